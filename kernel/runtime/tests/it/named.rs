//! The table of `docs/runtime-semantics.md` that says which tests ask what OTP's own suite asks.

use std::{collections::BTreeSet, fs, path::Path};

/// The groups of `supervisor_SUITE` (OTP 25), and the cases of it that are in none.
const ASKED: [&str; 43] = [
    "sup_start",
    "sup_start_map",
    "sup_stop",
    "child_adm",
    "child_adm_simple",
    "extra_return",
    "child_specs",
    "child_specs_map",
    "sup_flags",
    "multiple_restarts",
    "restart_one_for_one",
    "restart_one_for_all",
    "restart_simple_one_for_one",
    "restart_rest_for_one",
    "normal_termination",
    "shutdown_termination",
    "abnormal_termination",
    "child_unlink",
    "tree",
    "significant",
    "count_children",
    "count_children_supervisor",
    "count_restarting_children",
    "get_callback_module",
    "do_not_save_start_parameters_for_temporary_children",
    "do_not_save_child_specs_for_temporary_children",
    "simple_one_for_one_scale_many_temporary_children",
    "temporary_bystander",
    "simple_global_supervisor",
    "hanging_restart_loop",
    "hanging_restart_loop_rest_for_one",
    "hanging_restart_loop_simple",
    "code_change",
    "code_change_map",
    "code_change_simple",
    "code_change_simple_map",
    "order_of_children",
    "scale_start_stop_many_children",
    "format_log_1",
    "format_log_2",
    "already_started_outside_supervisor",
    "which_children",
    "which_children_simple_one_for_one",
];

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether a test of this path is among the tests of this crate, or of the kernel.
fn is_there(root: &Path, path: &str) -> bool {
    [root.join("tests/it"), root.join("../tests/it")].iter().any(|tests| is_in(tests, path))
}

fn is_in(tests: &Path, path: &str) -> bool {
    let mut names: Vec<&str> = path.split("::").collect();
    let name = names.pop().unwrap();
    let file = tests.join(names.join("/")).with_extension("rs");
    let text = fs::read_to_string(file).unwrap_or_default();
    let Some((before, _)) = text.split_once(&format!("fn {name}()")) else { return false };
    before.trim_end_matches("async ").trim_end().ends_with(']') && before.rsplit("#[").next().unwrap().contains("test")
}

/// What is wrong with a table.
fn faults(table: &str, root: &Path) -> Vec<String> {
    let (mut asked, mut faults) = (BTreeSet::new(), Vec::new());
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let (left, right) = row.trim_matches('|').split_once('|').unwrap();
        for one in quoted(left).filter(|one| !asked.insert((*one).to_owned())) {
            faults.push(format!("{one} is asked twice"));
        }
        let named: Vec<&str> = quoted(right).collect();
        if named.is_empty() && !right.trim().starts_with("no counterpart: ") {
            faults.push(format!("nothing asks {left}"));
        }
        faults.extend(named.into_iter().filter(|path| !is_there(root, path)).map(|path| format!("no test {path}")));
    }
    let expected: BTreeSet<String> = ASKED.into_iter().map(str::to_owned).collect();
    faults.extend(expected.symmetric_difference(&asked).map(|one| format!("{one} is missing, or not asked there")));
    faults
}

#[test]
fn every_group_of_otps_suite_has_tests_here_and_every_test_that_is_named_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("../../docs/runtime-semantics.md")).unwrap();
    let table = text.split_once("## OTP's own supervisor suite").unwrap().1;
    assert_eq!(faults(table, root), [""; 0]);
    // It finds what it is there to find.
    let broken = table.replace("`tree`", "`three`").replace("one_for_one_starts_only_the_one_again", "nobody_wrote_it");
    let found = faults(&broken, root);
    assert_eq!(found.len(), 3, "{found:?}");
}
