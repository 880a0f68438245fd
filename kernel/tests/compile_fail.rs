//! What must not compile, beside what does.

#[test]
fn there_is_no_way_to_a_permit_but_the_door() {
    let tests = trybuild::TestCases::new();
    tests.pass("tests/compile_fail/twin.rs");
    for way in ["literal", "clone", "reuse", "deserialise", "default", "verdict_alone", "durable"] {
        tests.compile_fail(format!("tests/compile_fail/{way}.rs"));
    }
}
