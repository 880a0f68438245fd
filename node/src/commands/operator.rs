//! `ephor operator`: who may operate the node, and as what.

use std::{path::Path, process::ExitCode};

use anyhow::{Context, bail};
use ephor_base::{Digest, files::Files as _};
use ephor_chain::{Protection, disk::Disk, protection::relock};
use ephor_record::{Role, operators::is_name};
use serde_json::json;

use super::{resting, sessions::json_lines};
use crate::{
    cli,
    client::Client,
    home::Home,
    host::SystemRandom,
    operation::{Done, OperatorView, Wanted},
    operator::Operator,
    passphrase,
    protocol::to_hex,
    terminal::{self, plain},
};

pub(crate) async fn operator(home: &Home, args: cli::Operator) -> anyhow::Result<ExitCode> {
    let text = match args {
        cli::Operator::Add { name, role, public, new_file, unprotected, json } => {
            let wanted = New { name: &name, role: role.into(), new_file: new_file.as_deref(), unprotected };
            wanted.enrol(home, public.as_deref(), json).await?
        }
        cli::Operator::List { json } => {
            let operators = match resting::operators(home).await? {
                Some(operators) => operators,
                None => Client::reach(home).await?.roster().await?.operators,
            };
            if json { json_lines(&operators)? } else { table(&operators) + &unlocked(home, &operators) }
        }
        cli::Operator::Remove { name, json } => {
            change(home, &name, |view| Wanted::Dismiss { operator: view.operator }, json, "is dismissed").await?
        }
        cli::Operator::Role { name, role, json } => {
            let (role, said) = (role.into(), format!("is {} from here on", Role::from(role).name()));
            change(home, &name, |view| Wanted::Rank { operator: view.operator, role }, json, &said).await?
        }
        cli::Operator::Key { file, new_file, unprotected } => {
            let operator = if file.exists() {
                Operator::load(&file, &passphrase::of_credential(home, &file)?)?
            } else {
                Operator::make(&file, &protection(new_file.as_deref(), unprotected)?, &SystemRandom)?
            };
            public_key(&operator) + "\n"
        }
        cli::Operator::Passphrase { new_file, remove } => relocked(home, new_file.as_deref(), remove)?,
    };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

/// An operator to be enrolled.
struct New<'a> {
    name: &'a str,
    role: Role,
    new_file: Option<&'a Path>,
    unprotected: bool,
}

impl New<'_> {
    async fn enrol(&self, home: &Home, public: Option<&str>, json: bool) -> anyhow::Result<String> {
        if !is_name(self.name) {
            bail!("`{}` is no name for an operator: 1 to 64 of a-z, 0-9, `.`, `_` and `-`", plain(self.name));
        }
        let mut client = Client::reach(home).await?;
        let roster = client.roster().await?;
        if roster.operators.iter().any(|one| one.name == self.name) {
            bail!("there is an operator `{}`; `ephor operator list` shows all", self.name);
        }
        let (key, file) = match public {
            Some(text) => (text.trim().parse().ok().context("--public: a key is 64 hexadecimal digits")?, None),
            None => {
                let file = home.credential_of(self.name);
                if file.exists() {
                    bail!(in_the_way(&file));
                }
                let operator = self.make(&file)?;
                (Digest(operator.key().verifying_key().to_bytes()), Some(file))
            }
        };
        let wanted = Wanted::Enrol { key, name: self.name.to_owned(), role: self.role };
        let done = match client.decree(&roster, wanted).await {
            Ok(done) => done,
            Err(error) => {
                // A credential that counts for nothing is in the way of the next try.
                if let Some(file) = &file {
                    let _gone = std::fs::remove_file(file);
                }
                return Err(error);
            }
        };
        let Done::Recorded { seq } = done else { bail!("the node answered something else") };
        if json {
            let value = json!({"name": self.name, "role": self.role, "key": key, "file": file, "seq": seq});
            return Ok(format!("{value}\n"));
        }
        let kept = file.map(|file| {
            let locked =
                if self.is_unprotected() { "it opens without a passphrase" } else { "it opens with its passphrase" };
            format!("\nThe credential is `{}`; {locked}. Use it with --as {}", file.display(), self.name)
        });
        Ok(format!("{} is {} (entry {seq}).{}\n", self.name, self.role.name(), kept.unwrap_or_default()))
    }

    /// An operator who answers, or says who answers, has a passphrase; a process of the same user can read files.
    fn is_unprotected(&self) -> bool {
        self.unprotected || (self.role < Role::Approver && self.new_file.is_none())
    }

    fn make(&self, file: &Path) -> anyhow::Result<Operator> {
        let protection = protection(self.new_file, self.is_unprotected())?;
        if let Some(folder) = file.parent() {
            Disk.create_folder(folder).with_context(|| format!("`{}` cannot be made", folder.display()))?;
        }
        Operator::make(file, &protection, &SystemRandom)
    }
}

/// What another enrolment has made just now, or one left that was cut short.
fn in_the_way(file: &Path) -> String {
    format!(
        "there is a credential `{}` already, and none is overwritten: if no operator uses it, remove it and try again",
        file.display()
    )
}

fn protection(new_file: Option<&Path>, unprotected: bool) -> anyhow::Result<Protection> {
    if unprotected { Ok(Protection::none()) } else { passphrase::new(new_file) }
}

fn public_key(operator: &Operator) -> String {
    to_hex(operator.key().verifying_key().as_bytes())
}

async fn change(
    home: &Home,
    name: &str,
    wanted: impl Fn(&OperatorView) -> Wanted,
    json: bool,
    said: &str,
) -> anyhow::Result<String> {
    let mut client = Client::reach(home).await?;
    let roster = client.roster().await?;
    let found = roster.operators.iter().find(|one| one.name == name);
    let found =
        found.with_context(|| format!("there is no operator `{}`; `ephor operator list` shows all", plain(name)))?;
    let done = client.decree(&roster, wanted(found)).await?;
    let Done::Recorded { seq } = done else { bail!("the node answered something else") };
    if json {
        Ok(format!("{}\n", json!({"name": name, "seq": seq})))
    } else {
        Ok(format!("{name} {said} (entry {seq}).\n"))
    }
}

fn relocked(home: &Home, new_file: Option<&Path>, remove: bool) -> anyhow::Result<String> {
    let path = home.credential();
    let from = passphrase::of_credential(home, &path)?;
    let operator = Operator::load(&path, &from)?;
    let to = if remove { Protection::none() } else { passphrase::new(new_file)? };
    relock(std::slice::from_ref(&path), &Disk, &from, &to, &SystemRandom)?;
    let how = if remove { "without a passphrase" } else { "with the new passphrase" };
    Ok(format!("The credential `{}` of {} opens {how}.\n", path.display(), operator.id()))
}

/// That a process that can read the home's own credential can act with it, where nothing locks it.
fn unlocked(home: &Home, operators: &[OperatorView]) -> String {
    let file = home.operator_key();
    let Ok(own) = Operator::load(&file, &Protection::none()) else { return String::new() };
    let Some(view) = operators.iter().find(|one| one.operator == own.id()) else { return String::new() };
    format!(
        "\n`{}` has no passphrase: every process that can read it can act as `{}`, {}. `ephor operator passphrase` locks it.\n",
        file.display(),
        plain(&view.name),
        view.role.name()
    )
}

fn table(operators: &[OperatorView]) -> String {
    let mut text = format!("{:<20}  {:<8}  {:>6}  OPERATOR\n", "NAME", "ROLE", "ENTRY");
    for OperatorView { name, role, operator, since, .. } in operators {
        text.push_str(&format!("{:<20}  {:<8}  {:>6}  {operator}\n", plain(name), role.name(), since.0));
    }
    text
}
