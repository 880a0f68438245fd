//! `ephor state`: what is kept of the record for quick answers.

use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::json;

use crate::{
    cli::{State, StateCommand},
    home::Home,
    projections::{Answering, Found, Question},
    terminal,
};

pub(crate) fn state(home: &Home, args: &State) -> anyhow::Result<ExitCode> {
    let mut answering = Answering::find(home)?;
    let text = match args.command {
        None => match answering.ask(Question::Figures {})? {
            Found::Figures { figures, chain } if args.json => {
                let (bytes, on_disk) = (figures.bytes, figures.on_disk);
                format!("{}\n", json!({"applied": figures.applied, "chain": chain, "bytes": bytes, "on_disk": on_disk}))
            }
            Found::Figures { figures, chain } => {
                let place = if figures.on_disk { "on the disk" } else { "in memory: the folder cannot be written" };
                format!(
                    "{} of {chain} entries applied, {} KiB {place}\n",
                    figures.applied,
                    figures.bytes.div_ceil(1024)
                )
            }
            _ => bail!("the node answered something else"),
        },
        Some(StateCommand::Rebuild { json }) => match answering.ask(Question::Rebuild {})? {
            Found::Rebuilt { caught_up } if json || args.json => format!("{}\n", serde_json::to_string(&caught_up)?),
            Found::Rebuilt { caught_up } => format!("built again from {} entries\n", caught_up.applied),
            _ => bail!("the node answered something else"),
        },
    };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}
