//! What can be a workspace.

use ephor_sandbox::{OpenWorkspace, WorkspaceError};
use std::path::Path;

#[test]
fn a_workspace_is_opened_by_its_resolved_path_alone() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("real/inner")).unwrap();
    std::fs::write(root.join("file"), "").unwrap();
    std::os::unix::fs::symlink("real", root.join("link")).unwrap();
    assert!(OpenWorkspace::open(&root.join("real/inner")).is_ok());
    for path in [root.join("link"), root.join("link/inner"), Path::new("real").to_owned()] {
        let opened = OpenWorkspace::open(&path);
        assert!(matches!(opened, Err(WorkspaceError::NotCanonical { .. })), "{path:?}");
    }
    let resolved = OpenWorkspace::resolve(&root.join("link/inner")).unwrap();
    assert_eq!(resolved, root.join("real/inner"));
    for path in [root.join("file"), root.join("none")] {
        assert!(matches!(OpenWorkspace::open(&path), Err(WorkspaceError::Unusable { .. })), "{path:?}");
    }
}

#[test]
fn a_workspace_around_or_inside_the_home_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("a/home/chain")).unwrap();
    std::fs::create_dir_all(root.join("a/beside")).unwrap();
    std::fs::create_dir_all(root.join("a/home-too")).unwrap();
    std::os::unix::fs::symlink("a/home", root.join("link")).unwrap();
    let apart = |workspace: &str, home: &str| {
        OpenWorkspace::open(&root.join(workspace)).unwrap().keep_apart_from(&root.join(home)).is_ok()
    };
    assert!(!apart("a", "a/home"));
    assert!(!apart("", "a/home"));
    assert!(!apart("a/home", "a/home"));
    assert!(!apart("a/home/chain", "a/home"));
    assert!(!apart("a", "link"));
    assert!(!apart("a/home/chain", "link"));
    assert!(!apart("a", "a/not/made/yet"));
    assert!(apart("a/beside", "a/home"));
    assert!(apart("a/home-too", "a/home"));
    assert!(apart("a/beside", "a/not/made/yet"));
}

#[test]
fn a_relative_path_means_nothing_to_another_process_and_is_refused() {
    for path in ["", ".", "..", "tests", "../sandbox", "./tests"] {
        let resolved = OpenWorkspace::resolve(Path::new(path));
        assert!(matches!(resolved, Err(WorkspaceError::Relative { .. })), "{path:?}: {resolved:?}");
    }
}

#[test]
fn a_folder_of_the_kernels_own_is_refused() {
    for path in ["/proc", "/proc/sys/kernel", "/sys"] {
        let opened = OpenWorkspace::open(Path::new(path));
        assert!(matches!(opened, Err(WorkspaceError::Kernel { .. })), "{path}: {opened:?}");
    }
}
