//! What somebody may do with a thing that is shared: the names that tools and people have for it.

/// To look at it, and to change it. The first are those of tools.
const LEVELS: [(&[&str], &[&str]); 3] = [
    (
        &["r", "ro", "read", "reader", "view", "viewer", "readonly"],
        &[
            "read",
            "view",
            "viewer",
            "reader",
            "read-only",
            "view-only",
            "lesen",
            "ansehen",
            "lesezugriff",
            "leserechte",
            "leserecht",
            "lecture",
            "lire",
            "consulter",
            "lettura",
            "leggere",
            "lectura",
            "leer",
            "leitura",
            "lezen",
            "odczyt",
            "odczytu",
            "只读",
            "查看",
            "閲覧",
        ],
    ),
    (
        &["c", "comment", "commenter"],
        &["comment", "commenter", "kommentieren", "commenter", "commentare", "comentar", "reageren", "komentować"],
    ),
    (
        &["rw", "w", "write", "writer", "edit", "editor", "readwrite"],
        &[
            "edit",
            "editor",
            "write",
            "writer",
            "editing",
            "read-write",
            "bearbeiten",
            "schreiben",
            "schreibzugriff",
            "schreibrechte",
            "modifier",
            "écriture",
            "éditer",
            "modifica",
            "modificare",
            "scrittura",
            "editar",
            "escritura",
            "escrita",
            "bewerken",
            "schrijven",
            "edycja",
            "edycji",
            "编辑",
            "編集",
        ],
    ),
];

/// Whether these options are levels of access, of which there are two and more.
pub(super) fn are_levels(options: &[String]) -> bool {
    options.len() > 1 && options.iter().all(|option| level(option).is_some())
}

/// Which level an option is.
pub(super) fn level(option: &str) -> Option<usize> {
    LEVELS.iter().position(|(options, _)| options.contains(&option))
}

/// Which level a word says.
pub(super) fn said(word: &str) -> Option<usize> {
    LEVELS.iter().position(|(_, words)| words.contains(&word))
}
