"""Checks the vectors of the mesh against its description.

Follows docs/mesh.md and shares no code with Ephor: Noise is written out here, the primitives are those of the Python package
`cryptography` (48 or later, for ML-KEM and ML-DSA). Usage: python3 docs/mesh/check.py [mesh/tests/vectors/mesh.json]
"""

import hashlib
import hmac
import json
import sys

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA65PrivateKey, MLDSA65PublicKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

CONTEXT = b"ephor-mesh/1"
PREFACE = b"ephmesh\x01"


def mac(key, message):
    return hmac.new(key, message, hashlib.sha256).digest()


def expand(chaining_key, material, count):
    """Noise's HKDF: `count` outputs of 32 bytes."""
    key, outputs, last = mac(chaining_key, material), [], b""
    for number in range(1, count + 1):
        last = mac(key, last + bytes([number]))
        outputs.append(last)
    return outputs


def nonce(number):
    return bytes(4) + number.to_bytes(8, "big")


class Symmetric:
    """Noise's SymmetricState, as a reader of messages."""

    def __init__(self):
        self.hash = b"Noise_XXpsk3_25519_AESGCM_SHA256"  # 32 bytes, so it is not hashed
        self.chaining_key = self.hash
        self.mix_hash(CONTEXT)

    def mix_hash(self, data):
        self.hash = hashlib.sha256(self.hash + data).digest()

    def mix_key(self, material):
        self.chaining_key, self.key = expand(self.chaining_key, material, 2)
        self.count = 0

    def mix_key_and_hash(self, material):
        self.chaining_key, mixed, self.key = expand(self.chaining_key, material, 3)
        self.mix_hash(mixed)
        self.count = 0

    def ephemeral(self, public):
        self.mix_hash(public)
        self.mix_key(public)

    def open(self, sealed):
        plain = AESGCM(self.key).decrypt(nonce(self.count), sealed, self.hash)
        self.count += 1
        self.mix_hash(sealed)
        return plain


def public(secret):
    key = X25519PrivateKey.from_private_bytes(secret).public_key()
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def agree(secret, other):
    return X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(other))


def messages(flight, preface):
    if preface:
        assert flight[:8] == PREFACE
        flight = flight[8:]
    found = []
    while flight:
        length = int.from_bytes(flight[:2], "big")
        found.append(flight[2 : 2 + length])
        flight = flight[2 + length :]
    return found


def handshake(vector):
    """Checks the handshake; gives the initiator's key of the link."""
    first, = messages(vector["flight_1"], True)
    second, = messages(vector["flight_2"], True)
    third, from_initiator = messages(vector["flight_3"], False)
    from_responder, = messages(vector["flight_4"], False)
    assert [len(first), len(second), len(third)] == [1232, 1184, 64]
    ours, own = vector["initiator_ephemeral"], vector["initiator_static"]
    theirs, other = public(vector["responder_ephemeral"]), public(vector["responder_static"])

    state = Symmetric()
    assert first[:32] == public(ours)
    state.ephemeral(first[:32])
    secret = MLKEM768PrivateKey.from_seed_bytes(vector["initiator_ml_kem_d"] + vector["initiator_ml_kem_z"])
    raw = serialization.Encoding.Raw, serialization.PublicFormat.Raw
    assert state.open(first[32:]) == secret.public_key().public_bytes(*raw)

    assert second[:32] == theirs
    state.ephemeral(theirs)
    state.mix_key(agree(ours, theirs))
    assert state.open(second[32:80]) == other
    state.mix_key(agree(ours, other))
    shared = secret.decapsulate(state.open(second[80:]))
    assert shared == vector["ml_kem_shared_secret"]
    assert state.hash == vector["hash_after_message_2"]

    psk = mac(mac(state.hash, shared), b"ephor-mesh/1 psk\x01")
    assert psk == vector["psk"]
    assert state.open(third[:48]) == public(own)
    state.mix_key(agree(own, theirs))
    state.mix_key_and_hash(psk)
    assert state.open(third[48:]) == b""
    assert state.hash == vector["handshake_hash"]

    keys = expand(state.chaining_key, b"", 2)
    for name, role, key, sealed in [
        ("initiator", 1, keys[0], from_initiator),
        ("responder", 2, keys[1], from_responder),
    ]:
        plain = AESGCM(key).decrypt(nonce(0), sealed, b"")
        assert plain == vector[name + "_credential"]
        credential(vector, name, role, state.hash, plain)
    return keys[0]


def credential(vector, name, role, final_hash, plain):
    assert len(plain) == 5439
    sizes, fields = [1, 32, 32, 1952, 64, 3309, 1, 16, 32], []
    for size in sizes:
        fields.append(plain[:size])
        plain = plain[size:]
    kind, node, ed25519, ml_dsa, classic, lattice, flag, invite, proof = fields
    assert kind == b"\x01" and node == vector[name + "_node"]
    assert flag + invite + proof == bytes(49)
    statement = CONTEXT + bytes([role]) + final_hash
    assert statement == vector[name + "_statement"]
    Ed25519PublicKey.from_public_bytes(ed25519).verify(classic, statement)
    MLDSA65PublicKey.from_public_bytes(ml_dsa).verify(lattice, statement)
    assert hashlib.sha256(CONTEXT + b" keys" + ed25519 + ml_dsa).digest() == vector[name + "_key_commitment"]
    seed, raw = vector[name + "_chain_seed"], (serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    assert Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes(*raw) == ed25519
    assert MLDSA65PrivateKey.from_seed_bytes(seed).public_key().public_bytes(*raw) == ml_dsa


def frames(key, listed):
    for count, frame in enumerate(listed, 1):
        wire = bytes.fromhex(frame["wire"])
        assert int.from_bytes(wire[:2], "big") == len(wire) - 2
        assert AESGCM(key).decrypt(nonce(count), wire[2:], b"").hex() == frame["plain"]
        if frame["frame"] == "rekey":
            key = AESGCM(key).encrypt(nonce(2**64 - 1), bytes(32), b"")[:32]


def invitation(vector):
    # These words stand for sixteen bytes of 0x7f: the second vector of BIP-39.
    assert vector["words"].startswith("legal winner thank year")
    key = mac(bytes(32), bytes([0x7F]) * 16)
    assert mac(key, b"ephor-mesh/1 invite id\x01")[:16].hex() == vector["id"]
    prover, final_hash = mac(key, b"ephor-mesh/1 invite proof\x01"), bytes.fromhex(vector["handshake_hash"])
    for name, role in [("initiator", 1), ("responder", 2)]:
        assert mac(prover, bytes([role]) + final_hash).hex() == vector[name + "_proof"]


def letters(vector):
    number = floor = f"{1:016x}"
    assert vector["hello"] == "01" + "a1" * 16
    assert vector["message"] == "02" + number + floor + b"hello".hex()
    assert vector["accepted"] == "03" + number + "00"


def membership(vector, handshake_vector):
    source = handshake_vector["initiator_node"] + (3).to_bytes(8, "big")
    destination = handshake_vector["responder_node"] + bytes(8)
    assert vector["announce"] == (source + bytes(2) + destination + b"\x06").hex()


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "mesh/tests/vectors/mesh.json"
    with open(path, encoding="utf-8") as file:
        vectors = json.load(file)
    fixed = {name: bytes.fromhex(value) for name, value in vectors["handshake"].items()}
    frames(handshake(fixed), vectors["initiator_frames"])
    invitation(vectors["invitation"])
    letters(vectors["letters"])
    membership(vectors["membership"], fixed)
    print("every vector is as the text says")


if __name__ == "__main__":
    main()
