//! Files that are more than files: those that hold secrets, and those that something other than the agent runs or trusts because
//! they are there. A call that touches one is asked about, whatever was allowed beforehand.
//!
//! The line: what a person starts by naming it, as source code, a Makefile or a `package.json`, is ordinary work; what a tool picks up by
//! itself, unasked, is here.

use ephor_base::EffectVector;
use minicbor::{Decode, Encode};

/// Why a file is more than a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(index_only)]
pub enum Holds {
    /// It is likely to hold keys or passwords: to read it is to learn them, to change it is to choose them.
    #[n(0)]
    Secrets,
    /// Another program runs it, or does as it says, unasked. To read it is harmless.
    #[n(1)]
    Commands,
}

/// Names of files that are more than files.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct SensitivePath {
    /// One or more parts of a path, each written in lower case, as the most forgiving file system compares it: `.git`, `.docker/config.json`, or with a
    /// `*` at its beginning or its end, `*.pem`. Whatever lies below is meant too.
    #[n(0)]
    pub pattern: String,
    /// What they hold.
    #[n(1)]
    pub holds: Holds,
    /// Who uses them, and for what.
    #[n(2)]
    pub why: String,
}

/// The names that every node has. Data: a new one is a line here.
const DEFAULTS: &[(&str, Holds, &str)] = &[
    (".git", Holds::Secrets, "git: hooks and settings that run commands, addresses with passwords"),
    ("git~1", Holds::Secrets, "git, by the short name that some file systems give `.git`"),
    (".git-credentials", Holds::Secrets, "passwords of git"),
    (".env*", Holds::Secrets, "settings and keys of programs; direnv runs `.envrc`"),
    (".ssh", Holds::Secrets, "keys and settings of SSH"),
    ("id_rsa", Holds::Secrets, "a key of SSH"),
    ("id_dsa", Holds::Secrets, "a key of SSH"),
    ("id_ecdsa", Holds::Secrets, "a key of SSH"),
    ("id_ecdsa_sk", Holds::Secrets, "a key of SSH"),
    ("id_ed25519", Holds::Secrets, "a key of SSH"),
    ("id_ed25519_sk", Holds::Secrets, "a key of SSH"),
    ("*.ppk", Holds::Secrets, "a key of PuTTY"),
    (".gnupg", Holds::Secrets, "keys of GnuPG"),
    ("*.pem", Holds::Secrets, "keys and certificates"),
    ("*.key", Holds::Secrets, "keys"),
    ("*.p12", Holds::Secrets, "keys and certificates"),
    ("*.pfx", Holds::Secrets, "keys and certificates"),
    ("*.jks", Holds::Secrets, "a key store of Java"),
    ("*.keystore", Holds::Secrets, "a key store of Java"),
    ("*.kdbx", Holds::Secrets, "a password store of KeePass"),
    (".password-store", Holds::Secrets, "a password store of pass"),
    (".netrc", Holds::Secrets, "passwords of curl, git and others"),
    ("_netrc", Holds::Secrets, "passwords of curl, git and others"),
    (".npmrc", Holds::Secrets, "tokens of npm"),
    (".yarnrc*", Holds::Secrets, "tokens of yarn, and the program that it runs"),
    (".pypirc", Holds::Secrets, "tokens of PyPI"),
    (".cargo/credentials*", Holds::Secrets, "tokens of cargo"),
    (".gem/credentials", Holds::Secrets, "tokens of RubyGems"),
    (".m2/settings*.xml", Holds::Secrets, "passwords of Maven"),
    (".pgpass", Holds::Secrets, "passwords of PostgreSQL"),
    (".my.cnf", Holds::Secrets, "passwords of MySQL"),
    (".htpasswd", Holds::Secrets, "passwords of a web server"),
    (".aws", Holds::Secrets, "keys of AWS"),
    (".azure", Holds::Secrets, "tokens of Azure"),
    (".config/gcloud", Holds::Secrets, "tokens of Google Cloud"),
    (".kube", Holds::Secrets, "keys of Kubernetes"),
    ("kubeconfig", Holds::Secrets, "keys of Kubernetes"),
    (".docker/config.json", Holds::Secrets, "passwords of registries"),
    (".dockercfg", Holds::Secrets, "passwords of registries"),
    (".vault-token", Holds::Secrets, "a token of Vault"),
    ("*.tfstate", Holds::Secrets, "the state of Terraform, passwords in it"),
    ("terraform.tfstate*", Holds::Secrets, "the state of Terraform, passwords in it"),
    ("*.tfvars", Holds::Secrets, "settings of Terraform, passwords in them"),
    (".terraformrc", Holds::Secrets, "tokens of Terraform"),
    (".config/gh", Holds::Secrets, "tokens of GitHub"),
    ("rclone.conf", Holds::Secrets, "passwords of rclone"),
    (".s3cfg", Holds::Secrets, "keys of S3"),
    (".boto", Holds::Secrets, "keys of Google Cloud and AWS"),
    ("authorized_keys*", Holds::Secrets, "who may log in by SSH"),
    ("*_history", Holds::Secrets, "what was typed into a shell or a database, passwords among it"),
    ("*.history", Holds::Secrets, "what was typed into a shell or a database, passwords among it"),
    (".gitconfig", Holds::Commands, "settings of git that run commands"),
    (".gitmodules", Holds::Commands, "where git fetches from"),
    (".gitattributes", Holds::Commands, "which filters git runs"),
    (".githooks", Holds::Commands, "hooks of git"),
    ("*.git/hooks", Holds::Commands, "hooks of a bare repository"),
    ("*.git/config", Holds::Commands, "settings of a bare repository that run commands"),
    ("head", Holds::Commands, "what makes a folder a bare repository, whose settings run commands"),
    (".config/git", Holds::Commands, "settings of git that run commands"),
    (".hg", Holds::Commands, "settings and hooks of Mercurial"),
    (".jj", Holds::Commands, "settings of Jujutsu"),
    (".lefthook*", Holds::Commands, "hooks of git"),
    ("lefthook*", Holds::Commands, "hooks of git"),
    (".husky", Holds::Commands, "hooks of git"),
    (".pre-commit-config.yaml", Holds::Commands, "hooks of git"),
    (".github", Holds::Commands, "jobs and rules of GitHub"),
    (".gitea", Holds::Commands, "jobs and rules of Gitea"),
    (".forgejo", Holds::Commands, "jobs and rules of Forgejo"),
    (".gitlab", Holds::Commands, "jobs and rules of GitLab"),
    (".gitlab-ci*", Holds::Commands, "jobs that run on GitLab"),
    ("*.gitlab-ci.yml", Holds::Commands, "jobs that run on GitLab"),
    (".circleci", Holds::Commands, "jobs that run on CircleCI"),
    (".buildkite", Holds::Commands, "jobs that run on Buildkite"),
    (".travis*", Holds::Commands, "jobs that run on Travis"),
    (".drone*", Holds::Commands, "jobs that run on Drone"),
    (".woodpecker*", Holds::Commands, "jobs that run on Woodpecker"),
    ("azure-pipelines*", Holds::Commands, "jobs that run on Azure"),
    (".cirrus*", Holds::Commands, "jobs that run on Cirrus"),
    (".appveyor*", Holds::Commands, "jobs that run on AppVeyor"),
    ("appveyor*", Holds::Commands, "jobs that run on AppVeyor"),
    (".semaphore", Holds::Commands, "jobs that run on Semaphore"),
    (".teamcity", Holds::Commands, "jobs that run on TeamCity"),
    ("cloudbuild*", Holds::Commands, "jobs that run on Google Cloud"),
    ("buildspec*", Holds::Commands, "jobs that run on AWS"),
    ("bitbucket-pipelines.yml", Holds::Commands, "jobs that run on Bitbucket"),
    ("jenkinsfile*", Holds::Commands, "jobs that run on Jenkins"),
    (".vscode", Holds::Commands, "tasks and settings that an editor runs"),
    (".idea", Holds::Commands, "tasks and settings that an editor runs"),
    (".zed", Holds::Commands, "tasks and settings that an editor runs"),
    (".vim*", Holds::Commands, "settings that an editor runs"),
    (".nvim*", Holds::Commands, "settings that an editor runs"),
    (".config/nvim", Holds::Commands, "settings that an editor runs"),
    (".emacs*", Holds::Commands, "settings that an editor runs"),
    (".nanorc", Holds::Commands, "settings that an editor runs"),
    ("*.code-workspace", Holds::Commands, "tasks and settings that an editor runs"),
    ("*.sublime-project", Holds::Commands, "tasks and settings that an editor runs"),
    (".exrc", Holds::Commands, "settings that an editor runs"),
    (".dir-locals.el", Holds::Commands, "settings that an editor runs"),
    (".devcontainer", Holds::Commands, "what an editor starts"),
    (".cargo/config*", Holds::Commands, "programs that cargo runs in place of others"),
    ("rust-toolchain*", Holds::Commands, "which compiler cargo runs"),
    (".mvn", Holds::Commands, "programs that Maven loads"),
    (".bazelrc", Holds::Commands, "programs that Bazel runs"),
    (".yarn", Holds::Commands, "the program that yarn runs"),
    (".pnp.*", Holds::Commands, "what Node loads before anything else"),
    (".pnpmfile.*", Holds::Commands, "what pnpm runs"),
    (".rprofile", Holds::Commands, "what an interpreter runs"),
    (".ghci", Holds::Commands, "what an interpreter runs"),
    ("*.pth", Holds::Commands, "what Python runs whenever it starts"),
    (".bash*", Holds::Commands, "what a shell runs"),
    (".profile", Holds::Commands, "what a shell runs"),
    (".zsh*", Holds::Commands, "what a shell runs"),
    (".zprofile", Holds::Commands, "what a shell runs"),
    (".zlog*", Holds::Commands, "what a shell runs"),
    (".kshrc", Holds::Commands, "what a shell runs"),
    (".cshrc", Holds::Commands, "what a shell runs"),
    (".tcshrc", Holds::Commands, "what a shell runs"),
    (".login", Holds::Commands, "what a shell runs"),
    (".logout", Holds::Commands, "what a shell runs"),
    (".inputrc", Holds::Commands, "what a key types into a shell"),
    (".xinitrc", Holds::Commands, "what the desktop starts"),
    (".xprofile", Holds::Commands, "what the desktop starts"),
    (".xsession*", Holds::Commands, "what the desktop starts"),
    (".tmux*", Holds::Commands, "what a terminal runs"),
    (".screenrc", Holds::Commands, "what a terminal runs"),
    (".gdbinit", Holds::Commands, "what a debugger runs"),
    (".lldbinit", Holds::Commands, "what a debugger runs"),
    (".pythonrc*", Holds::Commands, "what an interpreter runs"),
    (".irbrc", Holds::Commands, "what an interpreter runs"),
    (".mise*", Holds::Commands, "what runs when a folder is entered"),
    ("mise.toml", Holds::Commands, "what runs when a folder is entered"),
    (".direnvrc", Holds::Commands, "what runs when a folder is entered"),
    (".config/direnv", Holds::Commands, "what runs when a folder is entered"),
    ("crontab*", Holds::Commands, "what the system starts"),
    (".config/fish", Holds::Commands, "what a shell runs"),
    (".config/systemd", Holds::Commands, "what the system starts"),
    (".config/autostart", Holds::Commands, "what the desktop starts"),
    (".claude", Holds::Commands, "what another agent obeys or runs"),
    (".cursor", Holds::Commands, "what another agent obeys or runs"),
    (".cursorrules", Holds::Commands, "what another agent obeys"),
    (".windsurf*", Holds::Commands, "what another agent obeys or runs"),
    (".cline*", Holds::Commands, "what another agent obeys or runs"),
    (".aider*", Holds::Commands, "what another agent obeys or runs"),
    (".continue", Holds::Commands, "what another agent obeys or runs"),
    (".codex", Holds::Commands, "what another agent obeys or runs"),
    (".gemini", Holds::Commands, "what another agent obeys or runs"),
    (".ephor", Holds::Commands, "what agents here are"),
    ("agents.md", Holds::Commands, "what another agent obeys"),
    ("claude*.md", Holds::Commands, "what another agent obeys"),
    ("gemini.md", Holds::Commands, "what another agent obeys"),
    (".mcp.json", Holds::Commands, "what another agent runs"),
];

impl SensitivePath {
    /// Those that every node has.
    #[must_use]
    pub fn defaults() -> Vec<Self> {
        let one = |(pattern, holds, why): &(&str, Holds, &str)| Self {
            pattern: (*pattern).into(),
            holds: *holds,
            why: (*why).into(),
        };
        DEFAULTS.iter().map(one).collect()
    }

    /// What is joined to the effect vector of a call that touches it.
    #[must_use]
    pub const fn effects(&self) -> EffectVector {
        match self.holds {
            Holds::Secrets => EffectVector::new(0, 0, 700, 0, 700),
            Holds::Commands => EffectVector::new(0, 0, 0, 0, 700),
        }
    }

    /// The reason that a call which touches it is asked about.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self.holds {
            Holds::Secrets => SECRETS,
            Holds::Commands => COMMANDS,
        }
    }

    /// Whether the path is or lies below one of these, and a call that `changes` it, or only reads it, is concerned.
    #[must_use]
    pub fn is_touched(&self, path: &PlainPath, changes: bool) -> bool {
        (changes || self.holds == Holds::Secrets) && path.touches(&self.pattern)
    }
}

const SECRETS: &str = "path-may-hold-secrets";
const COMMANDS: &str = "path-is-used-by-other-programs";

/// Whether a call that is asked about for this reason is asked about each time: leave that was given for a whole tool does not cover it.
#[must_use]
pub fn is_asked_each_time(code: &str) -> bool {
    [SECRETS, COMMANDS, crate::gate::PLAN_IS_LOOKED_AT].contains(&code)
}

/// Whether `path` names, or lies below, what is likely to hold secrets, by the names that every node has.
#[must_use]
pub fn may_hold_secrets(path: &str) -> bool {
    let path = PlainPath::new(path);
    DEFAULTS.iter().any(|(pattern, holds, _)| *holds == Holds::Secrets && path.touches(pattern))
}

/// The parts of a path, each as the most forgiving file system compares it. Made once for each path, whatever it is held against.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlainPath(Vec<String>);

impl PlainPath {
    /// The parts of this path.
    #[must_use]
    pub fn new(path: &str) -> Self {
        let mut parts: Vec<String> = path.split(['/', '\\']).map(plain).filter(|part| !part.is_empty()).collect();
        // The folders that it lies in count all the same.
        let _example = parts.pop_if(|last| EXAMPLES.iter().any(|ending| last.ends_with(ending)));
        Self(parts)
    }

    /// Whether parts of it that follow one another fit the parts of a pattern, which is written as [`plain`] has it.
    fn touches(&self, pattern: &str) -> bool {
        let wanted = pattern.split('/').count();
        self.0
            .windows(wanted)
            .any(|parts| parts.iter().zip(pattern.split('/')).all(|(part, wanted)| fits(part, wanted)))
    }
}

/// Whether parts of `path` that follow one another fit the parts of `pattern`, which may be written in any way.
pub(crate) fn touches(path: &str, pattern: &str) -> bool {
    let pattern: Vec<String> = pattern.split('/').map(plain).collect();
    PlainPath::new(path).touches(&pattern.join("/"))
}

fn fits(part: &str, wanted: &str) -> bool {
    match wanted.split_once('*') {
        None => part == wanted,
        Some((start, end)) => part.len() >= start.len() + end.len() && part.starts_with(start) && part.ends_with(end),
    }
}

/// The endings of a copy that a program or a person leaves beside a file: it is as much as the file.
const COPIES: [&str; 10] = ["~", ".bak", ".backup", ".old", ".orig", ".save", ".saved", ".copy", ".swp", ".tmp"];

/// The endings of an example of a file: it is made to be read by everybody, and nothing runs it.
const EXAMPLES: [&str; 4] = [".example", ".sample", ".template", ".dist"];

/// A name as the most forgiving file system compares it: without case, without characters that do not show, and without
/// the dots and spaces that some cut off at the end; a copy has the name of what it is a copy of.
pub(crate) fn plain(name: &str) -> String {
    let shows = |c: &char| !matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let name: String = name.chars().filter(shows).collect();
    // Some file systems keep a second content of a file behind a colon.
    let name = name.split(':').next().unwrap_or_default();
    // Upper case first: a long s folds to an s only that way.
    let name = name.trim_end_matches(['.', ' ']).to_uppercase().to_lowercase();
    let mut own = name.as_str();
    while let Some(shorter) = COPIES.iter().find_map(|ending| own.strip_suffix(ending).filter(|own| !own.is_empty())) {
        own = shorter;
    }
    own.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_written_as_paths_are_compared() {
        for (pattern, ..) in DEFAULTS {
            let plainly: Vec<String> = pattern.split('/').map(plain).collect();
            assert_eq!(plainly.join("/"), *pattern);
        }
    }
}
