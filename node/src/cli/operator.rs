//! What can be typed about operators.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Subcommand, Debug)]
pub(crate) enum Operator {
    /// Enrol an operator: makes a credential, or takes the public key of one. An owner does this.
    Add {
        /// The operator's name: a-z, 0-9, `.`, `_` and `-`.
        #[arg(value_name = "NAME")]
        name: String,
        /// What the operator may do; each role may also do what those before it may.
        #[arg(long, value_enum)]
        role: Role,
        /// Take this public key, as `ephor operator key` prints it, instead of making a credential.
        #[arg(long, value_name = "KEY", conflicts_with_all = ["new_file", "unprotected"])]
        public: Option<String>,
        /// Read the passphrase for the new credential from this file, instead of asking at the terminal.
        #[arg(long, value_name = "FILE")]
        new_file: Option<PathBuf>,
        /// Without a passphrase: a process that can read the file is this operator. So it is with viewers and operators anyway.
        #[arg(long, conflicts_with = "new_file")]
        unprotected: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List the operators in office, by name.
    List {
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
    },
    /// Dismiss an operator: the credential counts no longer, and never again. An owner does this.
    Remove {
        /// The operator's name.
        #[arg(value_name = "NAME")]
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Give an operator another role. An owner does this.
    Role {
        /// The operator's name.
        #[arg(value_name = "NAME")]
        name: String,
        /// The role.
        #[arg(value_enum)]
        role: Role,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the public key of a credential, for an owner to enrol; makes the credential if there is none in the file.
    Key {
        /// The file of the credential.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Read the passphrase for a new credential from this file, instead of asking at the terminal.
        #[arg(long, value_name = "FILE")]
        new_file: Option<PathBuf>,
        /// Make it without a passphrase.
        #[arg(long, conflicts_with = "new_file")]
        unprotected: bool,
    },
    /// Set, change or remove the passphrase of the credential in use.
    Passphrase {
        /// Read the new passphrase from this file, instead of asking at the terminal.
        #[arg(long, value_name = "FILE", conflicts_with = "remove")]
        new_file: Option<PathBuf>,
        /// Take the passphrase away: a process that can read the file is this operator.
        #[arg(long)]
        remove: bool,
    },
}

/// What an operator may do.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Looks.
    Viewer,
    /// Runs agents, suspends, stops and budgets them.
    Operator,
    /// Answers deferred actions.
    Approver,
    /// Enrols others, changes the constitution, erases, prunes and changes the keys.
    Owner,
}

impl From<Role> for ephor_record::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Viewer => Self::Viewer,
            Role::Operator => Self::Operator,
            Role::Approver => Self::Approver,
            Role::Owner => Self::Owner,
        }
    }
}
