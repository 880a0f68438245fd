//! The primitives of a link against cacophony's vector for the pattern.

use std::sync::Arc;

use ephor_base::Random;
use ephor_mesh::handshake::{PROTOCOL, libraries};
use serde_json::Value;
use snow::{Builder, HandshakeState};

/// Cacophony's vector for `Noise_XXpsk3_25519_AESGCM_SHA256`, as snow carries it.
const VECTOR: &str = include_str!("../vectors/cacophony-xxpsk3.json");

/// Gives the ephemeral key of the vector wherever randomness is asked for.
struct Fixed(Vec<u8>);

impl Random for Fixed {
    fn fill(&self, into: &mut [u8]) {
        into.copy_from_slice(&self.0);
    }
}

fn unhex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn side(vector: &Value, name: &str) -> HandshakeState {
    let of = |field: &str| unhex(&vector[format!("{name}_{field}")]);
    let (key, prologue) = (of("static"), of("prologue"));
    let psk: [u8; 32] = unhex(&vector[format!("{name}_psks")][0]).try_into().unwrap();
    let resolver = libraries(Arc::new(Fixed(of("ephemeral"))));
    let builder = Builder::with_resolver(PROTOCOL.parse().unwrap(), resolver);
    let builder = builder.prologue(&prologue).unwrap().local_private_key(&key).unwrap().psk(3, &psk).unwrap();
    if name == "init" { builder.build_initiator().unwrap() } else { builder.build_responder().unwrap() }
}

#[test]
fn the_pattern_gives_cacophonys_bytes() {
    let vector: Value = serde_json::from_str(VECTOR).unwrap();
    assert_eq!(vector["protocol_name"], PROTOCOL);
    let (mut sender, mut receiver) = (side(&vector, "init"), side(&vector, "resp"));
    let messages: Vec<[Vec<u8>; 2]> = vector["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| [unhex(&message["payload"]), unhex(&message["ciphertext"])])
        .collect();
    let mut buffer = vec![0; 1000];
    for [payload, ciphertext] in &messages[..3] {
        let length = sender.write_message(payload, &mut buffer).unwrap();
        assert_eq!(&buffer[..length], ciphertext);
        let length = receiver.read_message(ciphertext, &mut buffer).unwrap();
        assert_eq!(&buffer[..length], payload);
        std::mem::swap(&mut sender, &mut receiver);
    }
    assert_eq!(sender.get_handshake_hash(), unhex(&vector["handshake_hash"]));
    // After three swaps the responder is the next to send, as in the vector.
    let (mut sender, mut receiver) = (sender.into_transport_mode().unwrap(), receiver.into_transport_mode().unwrap());
    for [payload, ciphertext] in &messages[3..] {
        let length = sender.write_message(payload, &mut buffer).unwrap();
        assert_eq!(&buffer[..length], ciphertext);
        let length = receiver.read_message(ciphertext, &mut buffer).unwrap();
        assert_eq!(&buffer[..length], payload);
        std::mem::swap(&mut sender, &mut receiver);
    }
}

/// The node's own socket speaks another pattern, through snow's default libraries. What this crate turns on in snow changes nothing
/// there.
#[test]
fn snows_default_libraries_still_serve_the_socket_of_a_home() {
    let builder =
        || Builder::new("Noise_NN_25519_ChaChaPoly_SHA256".parse().unwrap()).prologue(b"ephor socket").unwrap();
    let (mut client, mut node) = (builder().build_initiator().unwrap(), builder().build_responder().unwrap());
    let (mut bytes, mut payload) = (vec![0; 200], vec![0; 200]);
    let length = client.write_message(&[], &mut bytes).unwrap();
    node.read_message(&bytes[..length], &mut payload).unwrap();
    let length = node.write_message(&[], &mut bytes).unwrap();
    client.read_message(&bytes[..length], &mut payload).unwrap();
    let (mut client, mut node) = (client.into_transport_mode().unwrap(), node.into_transport_mode().unwrap());
    let length = client.write_message(b"status", &mut bytes).unwrap();
    let length = node.read_message(&bytes[..length], &mut payload).unwrap();
    assert_eq!(&payload[..length], b"status");
}
