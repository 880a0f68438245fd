#!/usr/bin/env python3
"""A second verifier of chains, after ../chain-format.md. It shares no code and no library with the first.

    verify.py chain FOLDER KEYS [VAULT]     the published folder of a log, and its sealed contents if VAULT is given
    verify.py proof FILE KEYS               the proof of one entry

KEYS is a file with the two verifier keys. Prints what holds and exits with 0, or says what does not and exits with 1.
Needs the package `cryptography`, 47 or later.
"""
import base64
import hashlib
import os
import re
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA65PublicKey

ML_DSA_65 = b"\xffML-DSA-65 FIPS-204 pure empty-context"
PART_BYTES = 49152
ITEM_BYTES = 16384
LEAST_KEPT = 180 * 86400
LONGEST_USE = 90 * 86400 * 10**6
MOST_GAP = 7 * 86400 * 10**6
# The points of small order on the curve of Ed25519, in every encoding.
SMALL_ORDER = {bytes.fromhex(point) for point in (
    "01" + "00" * 31, "01" + "00" * 30 + "80", "00" * 32, "00" * 31 + "80",
    "ec" + "ff" * 30 + "7f", "ec" + "ff" * 31, "ed" + "ff" * 30 + "7f", "ed" + "ff" * 31, "ee" + "ff" * 30 + "7f",
    "ee" + "ff" * 31,
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa")}


class Bad(Exception):
    """Something that does not hold."""


def need(holds, what):
    if not holds:
        raise Bad(what)


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def unbase64(text):
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise Bad(f"not base64: {error}") from None
    need(base64.b64encode(raw).decode() == text, "base64 in another form")
    return raw


def decimal(text):
    need(re.fullmatch(r"0|[1-9][0-9]*", text, re.ASCII), f"not a number: {text!r}")
    return int(text)


# --- Keys, notes and checkpoints ----------------------------------------------------------------------------------


class Keys:
    """The two verifier keys of one generation."""

    def __init__(self, lines):
        need(len(lines) == 2, "keys are two lines")
        self.lines, self.ids = lines, []
        typed = []
        for line in lines:
            name, key_id, key = line.split("+", 2)
            raw = unbase64(key)
            self.ids.append(sha(name.encode(), b"\n", raw)[:4])
            need(key_id == self.ids[-1].hex(), "a key id is wrong")
            typed.append((name, raw))
        (self.origin, ed), (name, ml) = typed
        need(name == self.origin and re.fullmatch(r"ephor/[0-9a-f]{32}", name), "the keys have wrong names")
        need(len(ed) == 33 and ed[:1] == b"\x01", "the first key is not Ed25519")
        need(ml.startswith(ML_DSA_65) and len(ml) == len(ML_DSA_65) + 1952, "the second key is not ML-DSA-65")
        self.first = self.origin == "ephor/" + sha(ed[1:]).hex()[:32]
        self.public = (Ed25519PublicKey.from_public_bytes(ed[1:]),
                       MLDSA65PublicKey.from_public_bytes(ml[len(ML_DSA_65):]))

    def accepts(self, which, text, signature):
        try:
            self.public[which].verify(signature, text)
            return True
        except InvalidSignature:
            return False


class Note:
    """A checkpoint with its signature lines."""

    def __init__(self, raw):
        need(len(raw) <= 262144, "a note is too long")
        text, empty, lines = raw.decode("utf-8").rpartition("\n\n")
        need(empty and lines.endswith("\n"), "a note without signatures")
        self.text, self.signatures = (text + "\n").encode(), []
        for line in lines[:-1].split("\n"):
            match = re.fullmatch(r"— ([^\s+]+) (\S+)", line)
            need(match, "a signature line is malformed")
            signature = unbase64(match[2])
            need(len(signature) > 4, "a signature line is malformed")
            self.signatures.append((match[1], signature[:4], signature[4:]))
        parts = text.split("\n")
        need(len(parts) == 3, "a checkpoint has three lines")
        self.origin, self.size, self.root = parts[0], decimal(parts[1]), unbase64(parts[2])
        need(len(self.root) == 32, "a root has 32 bytes")

    def check(self, keys):
        """Both keys must have signed, and each line of theirs must hold; lines of others say nothing."""
        need(self.origin == keys.origin, "a checkpoint of another log")
        need(len(self.signatures) <= 32, "too many signature lines")
        for which in (0, 1):
            own = [s for n, i, s in self.signatures if n == keys.origin and i == keys.ids[which]]
            need(own and all(keys.accepts(which, self.text, s) for s in own), f"signature {which + 1} is missing or wrong")


# --- Deterministic CBOR -------------------------------------------------------------------------------------------


class Null:
    """Stands for null, which is not the same as absent."""


def decode(raw):
    value, at = item(raw, 0)
    need(at == len(raw), "bytes after the CBOR")
    return value


def item(raw, at):
    need(at < len(raw), "the CBOR is cut short")
    major, info = raw[at] >> 5, raw[at] & 31
    at += 1
    if major == 7:
        need(info in (20, 21, 22), "a float, a tag or something else that has no place")
        return {20: False, 21: True, 22: Null}[info], at
    number = info
    if info >= 24:
        need(info <= 27, "an indefinite length")
        width = 1 << (info - 24)
        need(at + width <= len(raw), "the CBOR is cut short")
        number = int.from_bytes(raw[at:at + width], "big")
        need(number >= (24, 1 << 8, 1 << 16, 1 << 32)[info - 24], "a number that is not in its shortest form")
        at += width
    if major == 0:
        return number, at
    if major in (2, 3):
        need(at + number <= len(raw), "the CBOR is cut short")
        value = raw[at:at + number]
        return (value if major == 2 else value.decode("utf-8")), at + number
    if major == 4:
        values = []
        for _ in range(number):
            value, at = item(raw, at)
            values.append(value)
        return values, at
    need(major == 5, "a negative number or a tag")
    values, last = {}, -1
    for _ in range(number):
        key, at = item(raw, at)
        need(isinstance(key, int) and not isinstance(key, bool) and key > last, "keys of a map out of order")
        values[key], at = item(raw, at)
        last = key
    return values, at


def head(major, number):
    for width, limit in ((0, 24), (1, 1 << 8), (2, 1 << 16), (4, 1 << 32), (8, 1 << 64)):
        if number < limit:
            if width == 0:
                return bytes([major << 5 | number])
            return bytes([major << 5 | 24 + width.bit_length() - 1]) + number.to_bytes(width, "big")
    raise Bad("a number beyond 64 bits")


def encode(value):
    """Only what the lists of a snapshot consist of."""
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(encode, value))
    if value is Null:
        return b"\xf6"
    return head(5, len(value)) + b"".join(encode(k) + encode(v) for k, v in value.items())


# --- The shapes of entries, as the CDDL has them ------------------------------------------------------------------


def uint(bits):
    def check(value):
        need(isinstance(value, int) and not isinstance(value, bool) and value < 1 << bits, f"not a u{bits}")
    return check


def upto(most):
    def check(value):
        need(isinstance(value, int) and not isinstance(value, bool) and value <= most, "an unknown number of a kind")
    return check


def octets(length):
    def check(value):
        need(isinstance(value, bytes) and length in (None, len(value)), "not so many bytes")
    return check


def text(value):
    need(isinstance(value, str), "not a text")


def tool_name(value):
    need(isinstance(value, str) and re.fullmatch(r"[a-z0-9._-]{1,64}", value, re.ASCII), "not the name of a tool")


def truth(value):
    need(isinstance(value, bool), "not a truth value")


def many(shape):
    def check(value):
        need(isinstance(value, list), "not a list")
        for one in value:
            shape(one)
    return check


def maybe(shape):
    def check(value):
        if value is not Null:
            shape(value)
    check.optional = True
    return check


def record(*shapes):
    def check(value):
        need(isinstance(value, list) and len(value) <= len(shapes), "not a record of this kind")
        need(not value or value[-1] is not Null, "an absent field at the end of a record")
        for shape, field in zip(shapes, value):
            shape(field)
        need(all(hasattr(shape, "optional") for shape in shapes[len(value):]), "a record without a field it needs")
    return check


def choice(shapes):
    def check(value):
        need(isinstance(value, list) and len(value) == 2, "not a choice")
        need(isinstance(value[0], int) and not isinstance(value[0], bool), "a kind that is no number")
        need(value[0] in shapes, f"an unknown kind: {value[0]}")
        shapes[value[0]](value[1])
    return check


def mapping(needed, optional):
    def check(value):
        need(isinstance(value, dict) and set(needed) <= set(value), "a map without a field it needs")
        for key, field in value.items():
            shape = needed.get(key) or optional.get(key)
            need(shape, f"an unknown field: {key}")
            shape(field)
    return check


u16, u32, u64, digest, session, operator = uint(16), uint(32), uint(64), octets(32), octets(16), octets(16)
subject = mapping({}, {0: session, 1: operator, 2: text, 3: u64, 4: u64})
last_numbers = record(u64, u64, u64, u64)


def filled(shape):
    """A number or truth that is left out at the end of a record where it is zero or false."""
    def check(value):
        shape(value)
    check.optional = True
    return check


def yes(value):
    need(value is True, "a truth that is none is left out")


def budget(value):
    record(u64, u64, u64, u64, filled(u64), filled(u64), filled(u64))(value)
    need(len(value) == 4 or value[-1] != 0, "a zero at the end of a budget")


action, decision = upto(2), upto(2)
verdict = record(decision, many(record(upto(3), decision, text)), record(u16, u16, u16, u16, u16), digest)
grounds = record(upto(2), truth, truth, maybe(record(u64, u32)), maybe(u64), maybe(record(upto(6), u64, u64)))
end_reason = choice({0: record(), 1: record(), 2: record(upto(6)), 3: record(upto(3)), 4: record(upto(19)),
                     5: record(), 6: record(), 7: record(), 8: record()})
follows = record(text, u64, digest, text, last_numbers)
unsettled = record(u64, subject, budget)


def nothing(_value):
    need(False, "a field that has no meaning yet")


def offset(value):
    need(isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2880, "a clock that is ahead by days")


terms = record(digest, many(upto(5)), many(tool_name), maybe(record(many(text), many(text))))
because = choice({0: record(u64), 1: record(text, u64)})
always = record(text, tool_name, digest, many(text), many(text), record(u16, u16, u16, u16, u16), u64)
standing = record(many(record(text, upto(2), truth)), many(record(u64, u64, session, upto(4))),
                  many(record(text, text, text, upto(1), u64, u64, session, maybe(u64), filled(truth))),
                  many(record(u64, u64, session)),
                  maybe(nothing), maybe(many(record(octets(32), text, u64, maybe(upto(3))))), maybe(record(u64, digest)),
                  maybe(many(record(u64, session, octets(16), decision, digest, always))))
SNAPSHOT = record(u32, u32, u64, truth, last_numbers, record(text, text), many(unsettled),
                  many(record(digest, digest)), many(session), maybe(record(u64, u64)), maybe(standing), maybe(digest))
PRUNING = record(u64, u64, u64, u64, u64, digest, SNAPSHOT)
fact = choice({
    0: record(text, text, maybe(follows)), 1: record(u64, text, truth, u64, maybe(digest)), 2: record(u64), 3: record(octets(32)),
    4: record(digest, text, maybe(terms)), 5: record(tool_name, digest, digest),
    6: record(maybe(u64), u64), 7: record(text),
    8: record(u64, many(u64), maybe(session), maybe(because), maybe(truth), maybe(many(tool_name)), maybe(offset)),
    9: record(action, text, u32, digest, verdict, maybe(u64), maybe(grounds)),
    10: record(action, u32, u64, digest, budget), 11: record(u64, text, budget),
    12: record(u64, text, digest, digest, u64, maybe(u32), maybe(digest)),
    13: record(choice({0: record(u64), 1: record(many(tool_name))}), decision, octets(None), text, maybe(digest), maybe(text),
               maybe(always)),
    14: record(text),
    15: record(u64, end_reason, record(u32, u32, u32, u64, u64, u64)), 16: record(SNAPSHOT), 17: record(text, text),
    18: record(session, many(session), text), 19: record(PRUNING), 20: record(many(record(text, text, maybe(u64), maybe(u64)))),
    21: record(upto(3), truth, upto(2), text), 22: record(budget, text),
    25: record(u64, u64, upto(4)), 26: record(u64, text), 27: record(text, text, text, upto(1)), 28: record(text, u64),
    29: record(text),
    30: record(many(upto(5)), text, text, maybe(text), maybe(u16), maybe(many(tool_name)), maybe(text), filled(yes)),
    31: record(digest, u32, u32, octets(None)),
    32: record(u64, text, octets(None)), 33: record(u64, text, octets(None)),
    36: record(octets(32), text, upto(3), octets(None)), 37: record(octets(16), upto(3), octets(None)),
    38: record(octets(16), octets(None)), 39: record(digest, terms, text, octets(None)),
    44: record(text), 45: record(standing),
    48: record(record(text, text, text, u16, maybe(many(tool_name)), maybe(text), filled(yes))),
    49: record(text, text),
})
entry_shape = mapping({0: uint(16), 1: u64, 2: u64, 3: subject, 4: fact}, {5: record(digest, digest, u32)})


def read_entry(raw):
    need(len(raw) <= 65535, "an entry is too long")
    entry = decode(raw)
    entry_shape(entry)
    return entry


# --- The rules ----------------------------------------------------------------------------------------------------


def hold_order(item):
    """Seats by their bytes, then kinds by their number."""
    (seat, kind), _ = item
    return seat.encode(), kind


def name_order(item):
    return item[0].encode()


def trimmed(fields):
    """Fields that are absent at the end of a record are left out."""
    while fields[-1] is Null:
        fields = fields[:-1]
    return fields


class Rules:
    """What the entries so far amount to."""

    def __init__(self):
        self.size = self.version = self.time = self.boots = 0
        self.stopped, self.open, self.used, self.last = False, {}, [0, 0, 0, 0], None
        self.generations, self.erased, self.parts = [], set(), None
        self.holds, self.dead, self.schedules, self.owed = {}, {}, {}, {}
        self.retired, self.pruned, self.pruning, self.met = [], None, [], []
        self.operators, self.law, self.follows, self.reused = {}, None, False, {}
        self.vault = Null

    def begin(self, parts):
        """Begins where a pruned log begins, with what the parts of the pruning say."""
        self.size, self.time = parts[0][0], parts[0][3]
        for at, part in enumerate(parts):
            number, of, self.boots, self.stopped, used, keys, unsettled, earlier, erased, *more = part[6]
            need((number, of) == (at, len(parts)), "the parts of a pruning out of order")
            pruned, standing, self.vault = [*more, *[Null] * (3 - len(more))]
            self.used, self.pruned = list(used), pruned if pruned is not Null else None
            self.generations = [(0, Keys(keys))]
            self.retired += earlier
            self.erased |= set(erased)
            self.open.update({intent: (who, reserved) for intent, who, reserved in unsettled})
            self.stand(*([] if standing is Null else [standing]))
        divided = self.expected(with_erased=len(self.erased) > 0)
        need(divided == [part[6] for part in parts], "a state that is not divided or ordered as a snapshot is")

    def stand(self, standing=([], [], [], [])):
        """Takes over what stands, as a part of a snapshot has it."""
        holds, dead, schedules, owed, _, operators, law, reused = [*standing, *[Null] * (8 - len(standing))]
        self.reused.update({one[0]: one for one in ([] if reused is Null else reused)})
        for credential in [] if operators is Null else operators:
            self.operators[sha(credential[0])[:16]] = [*credential, *[Null] * (4 - len(credential))]
        self.law = self.law if law is Null else law
        self.holds.update({(seat, kind): tree for seat, kind, tree in holds})
        self.dead.update({message: tuple(about) for message, *about in dead})
        self.schedules.update({name: [*about, *[Null] * (8 - len(about))] for name, *about in schedules})
        self.owed.update({message: tuple(about) for message, *about in owed})

    def admit(self, entry):
        who, (kind, fields), content = entry[3], entry[4], entry.get(5)
        need(1 <= entry[0] <= 2 and entry[0] >= self.version, "its version is unknown or goes back")
        need(entry[1] == self.size, "its sequence is not its place")
        need(entry[2] >= self.time, "its time goes back")
        need(content is None or 0 in who, "it has content and no session")
        need(content is None or who[0] not in self.erased, "it has content of an erased session")
        need((kind == 0) == (self.size == 0), "an origin is first, and nothing else is")
        self.now = entry[2]
        need(self.parts is None or kind == 16, "it stands between the parts of a snapshot")
        need(not self.pruning or kind == 19, "it stands between the parts of a pruning")
        need(not self.stopped or kind in (1, 16), "it follows a stop")
        check = {0: self.origin, 1: self.boot, 2: self.stop, 10: self.intent, 11: self.outcome, 16: self.snapshot,
                 17: self.keys, 18: self.erase, 19: self.prune, 20: self.restarts}.get(kind)
        if check:
            check(fields, who, content)
        stands = {8: self.message, 15: self.turn_end, 21: self.signal, 22: self.limit, 25: self.die, 26: self.bury,
                  13: self.rule, 27: self.schedule, 28: self.skip, 29: self.unschedule, 32: self.judge, 33: self.judge,
                  36: self.decree, 37: self.decree,
                  38: self.decree, 39: self.decree, 44: self.withhold, 45: self.inherit, 48: self.appoint}.get(kind)
        if stands:
            stands(fields, who, entry)
        self.count(kind, fields, who)
        if kind != 16:
            self.stopped = kind == 2
        self.version, self.time, self.last, self.size = entry[0], entry[2], entry, self.size + 1

    def count(self, kind, fields, who):
        def at_least(which, number):
            self.used[which] = max(self.used[which], number)
        at_least(0, who.get(3, 0))
        at_least(1, who.get(4, 0))
        if kind in (8, 15, 25):
            at_least(2, fields[0])
        if kind == 12:
            at_least(3, fields[0])
        if kind == 13 and fields[0][0] == 0:
            at_least(3, fields[0][1][0])
        if kind == 20:
            for one in fields[0]:
                for pid in one[2:]:
                    at_least(0, 0 if pid is Null else pid)
        if kind == 0 and len(fields) > 2:
            for which, number in enumerate(fields[2][4]):
                at_least(which, number)

    def origin(self, fields, _who, _content):
        keys = Keys(fields[:2])
        need(keys.first, "the origin does not follow from its Ed25519 key")
        self.generations, self.follows = [(0, keys)], len(fields) > 2

    def boot(self, fields, _who, _content):
        need(fields[0] == self.boots + 1, "its number is not the next")
        need(fields[2] == (self.boots == 0 or self.stopped), "it is wrong about the stop before it")
        vault = fields[4] if len(fields) > 4 else Null
        need(self.vault in (Null, vault), "it is under another vault key than the boot before it")
        self.boots, self.vault = self.boots + 1, vault

    def stop(self, fields, _who, _content):
        need(fields[0] == self.boots, "it stops another boot")

    def intent(self, fields, who, _content):
        before = self.last
        need(before and before[4][0] == 9, "no verdict stands before the intent")
        given = before[4][1]
        need(given[4][0] == 0 and fields[2] == before[1], "no verdict that permits it stands before the intent")
        need(before[3] == who and given[0] == fields[0] and given[2] == fields[1] and given[3] == fields[3],
             "the verdict before the intent is about something else")
        need(len(encode([self.size, who, fields[4]])) <= ITEM_BYTES, "more than a snapshot can repeat")
        self.open[self.size] = (who, fields[4])

    def outcome(self, fields, who, _content):
        need(fields[0] in self.open and self.open[fields[0]][0] == who, "it ends no open intent of its subject")
        del self.open[fields[0]]

    def snapshot(self, fields, who, content):
        need(who == {} and content is None, "a snapshot with a subject or content")
        changed = len(self.generations) > 1 and self.generations[-1][0] == self.size
        need(not changed, "a snapshot right behind a change of keys")
        if self.parts is None:
            self.parts = self.expected(with_erased=len(fields[0][8]) > 0)
        need(self.parts and fields[0] == self.parts.pop(0), "it is not what the entries before it amount to")
        self.parts = self.parts or None

    def expected(self, with_erased=False):
        """The snapshot, in parts: each list is divided so that a part stays below its limit."""
        used = [keys for _, keys in self.generations]
        items = [(2, gone) for gone in self.retired]
        items += [(2, [sha(line.encode()) for line in keys.lines]) for keys in used[:-1]]
        items += [(3, gone) for gone in sorted(self.erased) if with_erased]
        items += [(1, [intent, *about]) for intent, about in sorted(self.open.items())]
        items += [(4, [seat, kind, tree]) for (seat, kind), tree in sorted(self.holds.items(), key=hold_order)]
        items += [(5, [message, *about]) for message, about in sorted(self.dead.items())]
        items += [(6, trimmed([name, *about])) for name, about in sorted(self.schedules.items(), key=name_order)]
        items += [(7, [message, *about]) for message, about in sorted(self.owed.items())]
        items += [(9, trimmed(list(one))) for _, one in sorted(self.operators.items())]
        items += [(10, self.law)] if self.law else []
        items += [(11, one) for _, one in sorted(self.reused.items())]
        groups, count = [tuple([] for _ in range(12))], 0
        for which, one in items:
            count += len(encode(one))
            if count > PART_BYTES:
                groups.append(tuple([] for _ in range(12)))
                count = len(encode(one))
            groups[-1][which].append(one)
        pruned = self.pruned or Null
        return [trimmed([part, len(groups), self.boots, self.stopped, list(self.used), used[-1].lines, *group[1:4], pruned,
                         trimmed([*group[4:8], Null, group[9] or Null, *(group[10] or [Null]),
                                  group[11] or Null]) if any(group[4:]) else Null, self.vault])
                for part, group in enumerate(groups)]

    def prune(self, fields, who, content):
        minimum, kept, floor, newest, size, root, state = terms = fields[0]
        need(set(who) == {1} and content is None, "a pruning for nobody, of something else, or with content")
        need(state[0] == len(self.pruning) and state[0] < state[1], "a part of a pruning out of order")
        same = not self.pruning or (self.pruning[0][:6], self.pruning[0][6][1]) == (terms[:6], state[1])
        need(same, "a part of another pruning")
        need(minimum > 0 and minimum % 256 == 0, "a log begins at a multiple of 256")
        need(self.pruned is None or minimum > self.pruned[0], "the log begins there already")
        need(minimum <= size <= self.size, "a pruning of more than was published")
        need(kept >= LEAST_KEPT, "entries are kept for less than 180 days")
        need(newest <= floor, "what goes is younger than the floor")
        need(self.now - floor >= kept * 10**6, "what goes is younger than what must be kept")
        self.pruning.append(terms)
        self.met.append((self.size, terms))
        if len(self.pruning) == state[1]:
            self.pruned, self.pruning = [minimum, self.size + 1 - state[1]], []

    def message(self, fields, who, entry):
        need(len(fields) != 5 or fields[4] is True, "a truth that is none is left out")
        need(len(fields) < 6 or fields[4] is not Null, "a truth that is none, and is not said")
        if len(fields) > 4 and fields[4]:
            need(0 in who and fields[0] not in self.owed, "an answer owed in no session, or owed twice")
            self.owed[fields[0]] = (entry[1], who[0])
        cause = fields[3] if len(fields) > 3 else Null
        if cause is not Null and cause[0] == 0:
            need(self.dead.pop(cause[1][0], None), "it replays what is no dead letter")
        if cause is not Null and cause[0] == 1:
            self.skip(cause[1], None, None)
            self.schedules[cause[1][0]][7] = Null

    def turn_end(self, fields, _who, _entry):
        need(fields[0] not in self.dead, "it answers a dead letter")
        self.owed.pop(fields[0], None)

    def signal(self, fields, who, _entry):
        (signal, tree, cause, _), seat = fields, who.get(2)
        need(seat is not None, "a signal to no seat")
        need(len(seat.encode()) <= ITEM_BYTES, "more than a snapshot can repeat")
        need(cause != 0 or 1 in who, "an operator's act without one")
        need(cause == 0 or (signal, cause) in ((0, 1), (1, 2)), "a cause that such a signal has not")
        below = lambda held: held == seat or held.startswith(seat + "/")
        if (signal, cause) == (1, 2):
            self.holds = {key: deep for key, deep in self.holds.items() if not below(key[0])}
        elif signal == 1:
            meant = lambda held: held == seat or tree and below(held)
            self.holds = {key: deep for key, deep in self.holds.items() if not meant(key[0]) or key[1] == 1}
        elif signal != 3:
            key = (seat, 2 if signal == 2 else cause)
            self.holds[key] = self.holds.get(key, False) or tree

    def limit(self, _fields, who, _entry):
        need(1 in who and 2 in who, "a limit for no seat or by nobody")
        self.holds.pop((who[2], 1), None)

    def die(self, fields, who, _entry):
        need(self.owed.pop(fields[0], None) == (fields[1], who.get(0)), "a dead letter that is owed no answer there")
        self.dead[fields[0]] = (fields[1], who[0], fields[2])

    def bury(self, fields, who, _entry):
        need(1 in who and self.dead.pop(fields[0], None), "it buries what is no dead letter, or for nobody")

    def schedule(self, fields, who, entry):
        need(0 in who and 1 in who and fields[0] not in self.schedules, "a schedule that may not be made")
        made = [*fields[1:], entry[1], entry[2], who[0], Null, Null]
        need(len(encode(trimmed([fields[0], *made]))) <= ITEM_BYTES, "more than a snapshot can repeat")
        self.schedules[fields[0]] = made

    def skip(self, fields, _who, _entry):
        schedule = self.schedules.get(fields[0])
        need(schedule, "no schedule of that name")
        need(schedule[6] is Null or fields[1] > schedule[6], "a schedule goes back")
        schedule[6] = fields[1]

    def unschedule(self, fields, who, _entry):
        need(1 in who and self.schedules.pop(fields[0], None), "it ends no schedule, or for nobody")

    def withhold(self, fields, who, _entry):
        role = self.operators.get(who.get(1), [Null] * 4)[3]
        need(1 in who and (role is Null or role == 0), "it withholds a schedule of nobody, or of somebody who may send")
        need(self.schedules.get(fields[0], [True] * 8)[7] is Null, "it withholds no schedule, or again")
        self.schedules[fields[0]][7] = True

    def inherit(self, fields, who, entry):
        need(self.follows and self.boots == 0, "a log takes over what stood before, and follows none or has begun")
        need(who == {} and 5 not in entry, "something is taken over with a subject, or with content")
        holds, *ends, _, operators, law, reused = [*fields[0], *[Null] * (8 - len(fields[0]))]
        need(reused is Null, "what ends with its log is taken over")
        need([list(one) for one in ends] == [[], [], []] and all(kind != 1 for _, kind, _ in holds), "what ends with its log is taken over")
        need(holds or operators is not Null or law is not Null, "nothing is taken over")
        need(law is Null or not self.law, "a second law is taken over")
        for key, name, _, *role in [] if operators is Null else operators:
            need(re.fullmatch(r"[a-z0-9._-]{1,64}", name, re.ASCII), "a name that is none")
            taken = any(one[1] == name for one in self.operators.values() if one[3] is not Null)
            need(not role or not taken, "a name that is taken")
            need(sha(key)[:16] not in self.operators and key not in SMALL_ORDER, "a key that was there before, or is none")
            self.operators[sha(key)[:16]] = [key, name, entry[1], *(role or [Null])]
        self.law = self.law if law is Null else [entry[1], law[1]]
        for seat, kind, tree in holds:
            self.holds[(seat, kind)] = tree or self.holds.get((seat, kind), False)

    def rule(self, fields, who, entry):
        if len(fields) < 7:
            return
        until = fields[6][6]
        need(fields[0][0] == 0 and fields[3] == "answered" and fields[4] is not Null and 0 in who and 1 in who,
             "it is used again, and answers no ticket, or is nobody's, or of no law")
        need(self.role(who[1]) >= 2, "it is used again, and is no approver's")
        need(entry[2] < until <= entry[2] + LONGEST_USE, "it is used again for no time, or for longer than 90 days")
        need(fields[1] != 1, "it is used again, and decides nothing")
        made = [entry[1], who[0], who[1], fields[1], fields[4], fields[6]]
        need(len(encode(made)) <= ITEM_BYTES, "more than a snapshot can repeat")
        self.reused = {at: one for at, one in self.reused.items() if one[5][6] > entry[2]}
        self.reused[entry[1]] = made

    def role(self, operator):
        role = self.operators.get(operator, [Null] * 4)[3]
        return -1 if role is Null else role

    def appoint(self, fields, who, entry):
        need({0, 2} <= set(who) and 1 not in who and 5 not in entry, "an appointment in no session or seat, or for somebody")
        need(1 <= fields[0][3] <= 900, "a null that is none")

    def judge(self, fields, who, entry):
        kind, (what, note, signature) = entry[4][0], fields
        need(kind == 32 or 0 in who, "it judges no session")
        need(self.role(who.get(1)) >= 2, "a judgment by nobody who is an approver")
        said = [0, [what]] if kind == 32 else [1, [who[0], what]]
        message = b"ephor judgment v1\n" + encode([self.generations[-1][1].origin, said, note])
        try:
            Ed25519PublicKey.from_public_bytes(self.operators[who[1]][0]).verify(signature, message)
        except (InvalidSignature, ValueError):
            raise Bad("a judgment that its approver has not signed for this log") from None
        need(kind == 33 or self.reused.pop(what, None), "it revokes what is not used again")

    def decree(self, fields, who, entry):
        kind, office = entry[4][0], {who: one for who, one in self.operators.items() if one[3] is not Null}
        latest = max([one[2] for one in self.operators.values()] + ([self.law[0]] if self.law else []), default=0)
        *said, signature = fields
        message = b"ephor decree v1\n" + encode([self.generations[-1][1].origin, latest, [kind - 36, said]])
        if not self.operators:
            need(kind == 36 and said[2] == 3, "the first decree enrols no owner")
            need(who.get(1) == sha(said[0])[:16], "the first owner is enrolled by somebody else")
            key = said[0]
        else:
            need(office.get(who.get(1), [Null] * 4)[3] == 3, "a decree by nobody who is an owner")
            key = office[who[1]][0]
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        except (InvalidSignature, ValueError):
            raise Bad("a decree that its owner has not signed for this place") from None
        if kind == 36:
            new = sha(said[0])[:16]
            need(re.fullmatch(r"[a-z0-9._-]{1,64}", said[1], re.ASCII), "a name that is none")
            need(all(one[1] != said[1] for one in office.values()), "a name that is taken")
            need(new not in self.operators, "a key that was enrolled before")
            need(said[0] not in SMALL_ORDER, "a key of small order")
            self.operators[new] = [said[0], said[1], entry[1], said[2]]
        elif kind == 39:
            self.law = [entry[1], said[1][0]]
        else:
            need(said[0] in office, "a decree on somebody who is not in office")
            role = said[1] if kind == 37 else Null
            owners = [who for who, one in office.items() if one[3] == 3]
            need(role == 3 or owners != [said[0]], "the last owner is taken away")
            self.operators[said[0]][2:] = [entry[1], role]

    def keys(self, fields, _who, _content):
        keys, used = Keys(fields), [keys for _, keys in self.generations]
        need(keys.origin == used[0].origin, "keys of another log")
        if keys.lines != used[-1].lines:
            again = any(line in old.lines for line in keys.lines for old in used)
            gone = any(sha(line.encode()) in old for line in keys.lines for old in self.retired)
            need(not again and not gone, "keys that were in force before")
            self.generations.append((self.size + 1, keys))

    def erase(self, fields, who, content):
        need(who.get(0) == fields[0] and 1 in who and content is None, "an erasure of another session than its subject's")
        need(fields[0] not in self.erased, "a session is erased twice")
        self.erased.add(fields[0])
        self.dead = {message: about for message, about in self.dead.items() if about[1] != fields[0]}
        self.schedules = {name: about for name, about in self.schedules.items() if about[5] != fields[0]}
        self.reused = {at: one for at, one in self.reused.items() if one[1] != fields[0]}

    def restarts(self, fields, _who, _content):
        need(fields[0], "it lists no restart")
        started = -1
        for one in fields[0]:
            if len(one) == 4:
                need(one[2] is Null or one[2] < one[3], "a restart that does not get a higher PID")
                need(started < one[3], "restarts out of the order of their PIDs")
                started = one[3]

    def signers(self, size):
        """The keys that sign a checkpoint of this size."""
        return [keys for since, keys in self.generations if since < size or since == 0][-1]


# --- The tree and its tiles ---------------------------------------------------------------------------------------


def full_root(hashes):
    while len(hashes) > 1:
        hashes = [sha(b"\x01", hashes[i], hashes[i + 1]) for i in range(0, len(hashes), 2)]
    return hashes[0]


class Ages:
    """How much time a record has lived through: a gap between entries counts as a week at most."""

    def __init__(self, begin, before):
        self.last, self.lived = before, 0
        self.ends = {begin: (0, before)} if before is not None else {}

    def take(self, seq, time):
        self.lived += min(time - (time if self.last is None else self.last), MOST_GAP)
        self.last = time
        if (seq + 1) % 256 == 0:
            self.ends[seq + 1] = (self.lived, time)

    def check(self, minimum, kept, newest):
        if minimum in self.ends:
            lived, time = self.ends[minimum]
            need(time == newest, "another time of the last entry that goes")
            need(self.lived - lived >= kept * 10**6, "what goes was not kept for long enough")


def root_of(rows):
    """The root, out of the hashes at each level that do not fill a tile."""
    root = None
    for row in rows:
        end = len(row)
        for bit in range(8):
            if len(row) >> bit & 1:
                subtree = full_root(row[end - (1 << bit):end])
                end -= 1 << bit
                root = subtree if root is None else sha(b"\x01", subtree, root)
    return root


def number_path(number):
    groups = [f"{number % 1000:03}"]
    while number >= 1000:
        number //= 1000
        groups.append(f"x{number % 1000:03}")
    return "/".join(reversed(groups))


def tile_path(level, index, width):
    return f"tile/{level}/{number_path(index)}" + (f".p/{width}" if width < 256 else "")


class Folder:
    """The published folder of a log."""

    def __init__(self, folder, keys, vault):
        self.folder, self.keys, self.vault = folder, keys, vault
        self.checkpoint = Note(self.read("checkpoint"))
        self.size, self.rules, self.rows = self.checkpoint.size, Rules(), [[]]
        self.minimum, self.ages, self.parts = 0, Ages(0, None), None

    def read(self, name):
        try:
            with open(os.path.join(self.folder, name), "rb") as file:
                return file.read()
        except OSError:
            raise Bad("it is missing") from None

    def count(self, level):
        return self.size if level == "entries" else self.size >> 8 * level

    def tile(self, level, index):
        """A tile as this size has it, or the beginning of a wider one."""
        width = min(self.count(level) - index * 256, 256)
        widths = [width, *sorted(self.widths(level, index) - set(range(width + 1))), 256]
        for found in widths:
            try:
                return self.read(tile_path(level, index, found)), found, width
            except Bad:
                continue
        raise Bad(f"{tile_path(level, index, width)}: it is missing")

    def widths(self, level, index):
        folder = os.path.join(self.folder, f"tile/{level}/{number_path(index)}.p")
        return {int(name) for name in os.listdir(folder)} if os.path.isdir(folder) else set()

    def hashes(self, level, index):
        raw, found, width = self.tile(level, index)
        need(len(raw) == 32 * found, f"{tile_path(level, index, found)}: it does not hold {found} hashes")
        return [raw[at:at + 32] for at in range(0, 32 * width, 32)]

    def bundle(self, index):
        raw, found, width = self.tile("entries", index)
        return split_bundle(raw, found, tile_path("entries", index, found))[:width]

    def verify(self):
        need(self.checkpoint.origin == self.keys.origin, "a log of other keys")
        kept = self.names()
        self.begin()
        kept = [size for size in kept if size > self.minimum]
        self.kept, self.journal = list(kept), self.oldest_segment()
        for index in range(self.minimum // 256, (self.size + 255) // 256):
            entries, leaves = self.bundle(index), self.hashes(0, index)
            sealed = open(self.content_path(index), "rb") if self.has_content(index) else None
            for raw, leaf in zip(entries, leaves):
                self.take(raw, leaf, sealed, kept)
            if sealed:
                need(self.rules.size % 256 or not sealed.read(1), f"bytes behind the contents of bundle {index}")
        for level, row in enumerate(self.rows):
            need(not row or self.hashes(level, self.count(level) >> 8) == row, f"a partial tile of level {level} is wrong")
        need(self.size > 0 and root_of(self.rows) == self.checkpoint.root, "the root is not that of the entries")
        need(not kept, "a kept checkpoint beyond the published size")
        self.checkpoint.check(self.rules.signers(self.size))
        for since, _ in self.rules.generations[1:]:
            held = self.journal is not None and self.journal >= since and since not in self.kept
            need(not held, f"the checkpoint {since} at a change of keys is not kept")
        ours = any(keys.lines == self.keys.lines for _, keys in self.rules.generations)
        need(ours, "the given keys never signed what is left of this log")
        need(self.minimum == 0 or self.rules.pruned[0] >= self.minimum, "the minimum is not on the record")
        self.prunings()
        self.strays()

    def begin(self):
        """Begins at the minimum, if the log was pruned."""
        if "minimum" not in os.listdir(self.folder):
            return
        lines = self.read("minimum").decode("ascii").split("\n")
        need(len(lines) == 3 and lines[2] == "", "the minimum is two lines")
        self.minimum, at = decimal(lines[0]), decimal(lines[1])
        need(self.minimum > 0 and self.minimum % 256 == 0 and self.minimum <= at, "a minimum that cannot be")
        parts = []
        while not parts or len(parts) < parts[0][6][1]:
            need(at < self.size, "the pruning that the minimum names is not published")
            kind, fields = read_entry(self.bundle(at // 256)[at % 256])[4]
            need(kind == 19 and fields[0][0] == self.minimum, "the minimum names no such pruning")
            parts.append(fields[0])
            at += 1
        self.rules.begin(parts)
        self.parts, self.ages = parts, Ages(self.minimum, parts[0][3])
        self.rows = self.rows_at(self.minimum)
        for level in range(1, 8):
            for index in range(self.minimum >> 8 * (level + 1)):
                parent = self.hashes(level + 1, index // 256)[index % 256]
                need(full_root(self.hashes(level, index)) == parent, f"{tile_path(level, index, 256)} is wrong")

    def rows_at(self, size):
        """The right edge of the tree when it had this size."""
        rows, level = [], 0
        while size >> 8 * level:
            index, width = divmod(size >> 8 * level, 256)
            rows.append(self.hashes(level, index)[:width] if width else [])
            level += 1
        return rows

    def prunings(self):
        """Each pruning: under a head of this log, and of the state that the entries which go amount to."""
        rules = Rules()
        if self.parts:
            rules.begin(self.parts)
        for seq, (minimum, _, _, _, size, root, state) in self.rules.met:
            need(size < self.minimum or root_of(self.rows_at(size)) == root, f"entry {seq}: another history")
            while rules.size < minimum:
                rules.admit(read_entry(self.bundle(rules.size // 256)[rules.size % 256]))
            if minimum > self.minimum:
                need(rules.expected()[state[0]] == state, f"entry {seq}: what goes amounts to something else")

    def take(self, raw, leaf, sealed, kept):
        at = self.rules.size
        try:
            need(sha(b"\x00", raw) == leaf, "its hash is not the one in the tile")
            entry = read_entry(raw)
            self.rules.admit(entry)
            self.ages.take(at, entry[2])
            if entry[4][0] == 19:
                minimum, seconds, _, newest, *_ = entry[4][1][0]
                self.ages.check(minimum, seconds, newest)
            if self.vault and 5 in entry:
                need(sealed, "its content is missing")
                need(sha(sealed.read(entry[5][2])) == entry[5][1], "its sealed content is another")
        except (Bad, UnicodeDecodeError) as error:
            raise Bad(f"entry {at}: {error}") from None
        self.push(0, leaf)
        if kept and kept[0] == at + 1:
            note = Note(self.read(f"checkpoints/{kept.pop(0):020}"))
            need((note.size, note.root) == (at + 1, root_of(self.rows)), f"the kept checkpoint {at + 1} is another")
            note.check(self.rules.signers(at + 1))

    def push(self, level, node):
        if level == len(self.rows):
            self.rows.append([])
        self.rows[level].append(node)
        if len(self.rows[level]) == 256:
            index = (self.rules.size >> 8 * (level + 1)) - 1
            need(self.hashes(level, index) == self.rows[level], f"{tile_path(level, index, 256)} is wrong")
            row, self.rows[level] = self.rows[level], []
            self.push(level + 1, full_root(row))

    def content_path(self, index):
        return os.path.join(self.vault, "content", number_path(index))

    def has_content(self, index):
        return self.vault and os.path.exists(self.content_path(index))

    def names(self):
        """Looks for unknown files. Gives the sizes of the kept checkpoints."""
        known = {"checkpoint", "checkpoint.tmp", "checkpoints", "tile", "minimum", "minimum.tmp", "journal"}
        need(set(os.listdir(self.folder)) <= known, "an unknown file")
        folder = os.path.join(self.folder, "checkpoints")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        need(all(re.fullmatch(r"[0-9]{20}(\.tmp)?", name, re.ASCII) for name in names), "an unknown file in checkpoints")
        return sorted(int(name) for name in names if not name.endswith(".tmp"))

    def oldest_segment(self):
        folder = os.path.join(self.folder, "journal")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return min((int(name[:-4]) for name in names if name.endswith(".seg")), default=None)

    def strays(self):
        """Tiles of earlier sizes must agree; whatever is no tile does not belong there."""
        top = os.path.join(self.folder, "tile")
        for folder, _, names in os.walk(top):
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), self.folder)
                if path.endswith(".tmp"):
                    continue
                match = re.fullmatch(r"tile/(entries|[0-7])/((?:x\d{3}/)*\d{3})(?:\.p/([1-9]\d*))?", path, re.ASCII)
                need(match, f"{path}: it does not belong here")
                level = match[1] if match[1] == "entries" else int(match[1])
                index, width = int(re.sub(r"\D", "", match[2])), int(match[3] or 256)
                need(path == tile_path(level, index, width) and (width < 256 or not match[3]), f"{path}: a wrong name")
                if index * 256 + width > self.count(level):
                    continue
                if level in ("entries", 0) and index < self.minimum // 256:
                    self.left_over(level, index, width, path)
                    continue
                if level == "entries":
                    own = split_bundle(self.read(path), width, path)
                    need(self.bundle(index)[:width] == own, f"{path}: another bundle than the one that replaced it")
                else:
                    need(b"".join(self.hashes(level, index)[:width]) == self.read(path), f"{path}: another tile")


    def left_over(self, level, index, width, path):
        """What was to be pruned and is still there is what its parent says; if it is partial it never counts."""
        if width == 256:
            raw = self.read(path)
            leaves = [sha(b"\x00", one) for one in split_bundle(raw, 256, path)] if level == "entries" else \
                [raw[at:at + 32] for at in range(0, len(raw), 32)]
            parent = self.hashes(1, index // 256)[index % 256]
            need(len(leaves) == 256 and full_root(leaves) == parent, f"{path}: another tile")


def split_bundle(raw, width, name):
    entries, at = [], 0
    while at < len(raw):
        length = int.from_bytes(raw[at:at + 2], "big")
        need(at + 2 + length <= len(raw), f"{name}: it is cut short")
        entries.append(raw[at + 2:at + 2 + length])
        at += 2 + length
    need(len(entries) == width, f"{name}: it does not hold {width} entries")
    return entries


# --- Proofs -------------------------------------------------------------------------------------------------------


def check_proof(raw, keys):
    top, empty, rest = raw.decode("utf-8").partition("\n\n")
    need(empty, "a proof without a checkpoint")
    lines = top.split("\n")
    need(len(lines) >= 3 and lines[0] == "c2sp.org/tlog-proof@v1", "not a tlog-proof")
    need(lines[1].startswith("extra ") and lines[2].startswith("index "), "a proof without its entry or its index")
    leaf, index = unbase64(lines[1][6:]), decimal(lines[2][6:])
    path = [unbase64(line) for line in lines[3:]]
    need(all(len(node) == 32 for node in path) and len(path) <= 65, "a hash has 32 bytes")
    note = Note(rest.encode())
    note.check(keys)
    need(index < note.size, "there is no such entry")
    at, last, node = index, note.size - 1, sha(b"\x00", leaf)
    for other in path:
        need(last > 0, "too many hashes")
        if at & 1 or at == last:
            node = sha(b"\x01", other, node)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            node = sha(b"\x01", node, other)
        at, last = at >> 1, last >> 1
    need(last == 0, "too few hashes")
    need(node == note.root, "the hashes do not lead to the root")
    need(read_entry(leaf)[1] == index, "the entry stands in another place than it says")
    return index, note.size


def main(arguments):
    if len(arguments) not in (3, 4) or arguments[0] not in ("chain", "proof"):
        sys.exit(__doc__)
    try:
        with open(arguments[2], encoding="utf-8") as file:
            keys = Keys(file.read().split("\n")[:-1])
        if arguments[0] == "proof":
            with open(arguments[1], "rb") as file:
                index, size = check_proof(file.read(), keys)
            print(f"entry {index} of {size}")
        else:
            folder = Folder(arguments[1], keys, arguments[3] if len(arguments) == 4 else None)
            folder.verify()
            print(f"{folder.size} {folder.checkpoint.root.hex()}")
    except (Bad, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
