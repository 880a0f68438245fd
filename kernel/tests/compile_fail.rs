//! What must not compile, beside what does.

#[test]
fn no_process_ends_another_or_speaks_to_it() {
    let tests = trybuild::TestCases::new();
    tests.pass("tests/compile_fail/relations.rs");
    for way in ["ends", "links", "delegates"] {
        tests.compile_fail(format!("tests/compile_fail/{way}.rs"));
    }
}

#[test]
fn there_is_no_way_to_a_permit_but_the_door() {
    let tests = trybuild::TestCases::new();
    tests.pass("tests/compile_fail/twin.rs");
    for way in ["literal", "clone", "reuse", "deserialise", "default", "verdict_alone", "durable", "content"] {
        tests.compile_fail(format!("tests/compile_fail/{way}.rs"));
    }
}
