"""SPEC A7: kernels/copy.ptx, read and run one thread after the other by an interpreter of the few instructions
that are in it. It stands in for no GPU; it finds wrong arithmetic, and accesses that are not aligned."""

import pathlib
import random
import re

import pytest

SOURCE = (pathlib.Path(__file__).resolve().parents[2] / "kernels" / "copy.ptx").read_text(encoding="utf-8")
MASK = (1 << 64) - 1
WARP = 32
BLOCK = 256
PIECE = 4096


def parse():
    """The instructions, as (predicate, negated, opcode, operands), and where the labels are."""
    body = re.sub(r"//.*", "", SOURCE)
    body = body[body.index("{", body.index(".visible")) + 1 : body.rindex("}")]
    code, labels = [], {}
    for label, text in re.findall(r"\s*(?:(\w+):)?\s*([^;:]*);", body):
        if label:
            labels[label] = len(code)
        text = " ".join(text.split())
        if text.startswith(".reg"):
            continue
        guard = re.match(r"@(!?)(%\w+) (.*)", text)
        negated, predicate, text = guard.groups() if guard else ("", None, text)
        opcode, _, rest = text.partition(" ")
        operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", rest)
        code.append((predicate, bool(negated), opcode, operands))
    return code, labels


CODE, LABELS = parse()


class Memory:
    """Bytes at addresses, in two blocks and a table; everything else is a fault."""

    def __init__(self, blocks):
        self.blocks = blocks

    def find(self, at, size):
        assert at % size == 0, f"{size} bytes at {at:#x} are not aligned"
        for base, block in self.blocks:
            if base <= at and at + size <= base + len(block):
                return block, at - base
        raise AssertionError(f"{size} bytes at {at:#x} are nobody's")

    def load(self, at, size):
        block, offset = self.find(at, size)
        return int.from_bytes(block[offset : offset + size], "little")

    def store(self, at, size, value):
        block, offset = self.find(at, size)
        block[offset : offset + size] = value.to_bytes(size, "little")


class Thread:
    def __init__(self, memory, parameters, block, thread):
        self.memory, self.parameters = memory, parameters
        self.r = {"%ctaid.x": block, "%ntid.x": BLOCK, "%tid.x": thread}

    def value(self, operand):
        return self.r[operand] if operand.startswith("%") else int(operand) & MASK

    def address(self, operand):
        base, _, offset = operand.strip("[]").partition("+")
        return self.r[base] + int(offset or 0)

    def access(self, opcode, operands):
        kinds = opcode.split(".")
        size = int(kinds[-1][1:]) // 8
        load = kinds[0] == "ld"
        names, place = (operands[0], operands[1]) if load else (operands[1], operands[0])
        names = [x.strip() for x in names.strip("{}").split(",")]
        at = self.address(place)
        if len(names) > 1:
            self.memory.find(at, size * len(names))  # a vector is aligned as a whole
        for i, name in enumerate(names):
            if load:
                self.r[name] = self.memory.load(at + i * size, size)
            else:
                self.memory.store(at + i * size, size, self.r[name] & ((1 << 8 * size) - 1))

    def compute(self, opcode, operands):
        name, *_ = opcode.split(".")
        args = [self.value(x) for x in operands[1:]]
        if name == "setp":
            how = opcode.split(".")[1]
            a, b = args
            result = {"ge": a >= b, "lt": a < b, "eq": a == b, "ne": a != b}[how]
        elif name in ("mov", "cvt", "cvta"):
            result = args[0]
        else:
            result = {
                "mul": lambda a, b: a * b,
                "mad": lambda a, b, c: a * b + c,
                "add": lambda a, b: a + b,
                "sub": lambda a, b: a - b,
                "neg": lambda a: -a,
                "min": min,
                "and": lambda a, b: a & b,
                "xor": lambda a, b: a ^ b,
                "shl": lambda a, b: a << b,
                "shr": lambda a, b: a >> b,
            }[name](*args) & MASK
        self.r[operands[0]] = result

    def run(self):
        at, steps = 0, 0
        while True:
            steps += 1
            assert steps < 10000, "it does not end"
            predicate, negated, opcode, operands = CODE[at]
            at += 1
            if predicate and self.r[predicate] == negated:
                continue
            if opcode == "ret":
                return
            if opcode == "bra":
                at = LABELS[operands[0]]
            elif opcode.startswith("ld.param"):
                self.r[operands[0]] = self.parameters[operands[1].strip("[]")]
            elif opcode.startswith(("ld.", "st.")):
                self.access(opcode, operands)
            else:
                self.compute(opcode, operands)


def launch(memory, pieces, **parameters):
    blocks = -(-pieces * WARP // BLOCK)
    for block in range(blocks):
        for thread in range(BLOCK):
            Thread(memory, {"count": pieces, **parameters}, block, thread).run()


TO, FROM, TABLE = 0x7F0000000000, 0x10000000, 0x20000000


def fresh(room):
    source = bytearray(random.randbytes(room))
    target = bytearray(random.randbytes(room))
    return source, target, bytes(target)


SIZES = [1, 2, 3, 4, 15, 16, 17, 31, 255, 256, 257, 2047, 2048, 2049, 4080, 4095, 4096]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("offsets", [(0, 0), (3, 3), (15, 31), (4, 8), (5, 1), (0, 1), (7, 2)])
def test_a_piece_is_copied_exactly_at_every_alignment(size, offsets):
    to, start = offsets
    source, target, before = fresh(PIECE + 64)
    memory = Memory([(TO, target), (FROM, source)])
    launch(memory, 1, table=0, to=TO + to, **{"from": FROM + start}, bytes=size)
    assert target == before[:to] + source[start : start + size] + before[to + size :]


@pytest.mark.parametrize("size", [4097, 8192, 10000, 40000])
def test_one_copy_of_several_pieces_is_whole(size):
    source, target, before = fresh(size + 64)
    memory = Memory([(TO, target), (FROM, source)])
    launch(memory, -(-size // PIECE), table=0, to=TO + 9, **{"from": FROM + 9}, bytes=size)
    assert target == before[:9] + source[9 : 9 + size] + before[9 + size :]


def test_a_table_of_pieces_is_gathered():
    source, target, before = fresh(40000)
    expected, table, at, start = bytearray(before), bytearray(), 0, 0
    count = 0
    while True:
        size = random.choice([1, 7, 16, 33, 100, 256, 1000])
        at += random.randrange(40)
        start += random.randrange(40)
        if max(at, start) + size > len(source):
            break
        expected[at : at + size] = source[start : start + size]
        for word in (TO + at, FROM + start, size):
            table += word.to_bytes(8, "little")
        at, start, count = at + size, start + size, count + 1
    memory = Memory([(TO, target), (FROM, source), (TABLE, table)])
    launch(memory, count, table=TABLE, to=0, **{"from": 0}, bytes=0)
    assert target == expected
