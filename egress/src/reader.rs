//! Reads what a web server has published, for a command that an operator gave.
//!
//! This is no way out for a process: nothing that runs in a node has a [`Reader`]. It sends nothing but names below a URL that
//! the operator typed, and no credential.

use std::{sync::Arc, time::Duration};

use reqwest::{Client, StatusCode, header::USER_AGENT, redirect};

use crate::{BaseUrl, Error, request::AGENT};

/// From the start of a request to the end of its headers, and the longest time without a byte after that.
const SILENCE: Duration = Duration::from_secs(30);

/// Reads files below one URL. Connections are kept for the next file.
#[derive(Clone, Debug)]
pub struct Reader {
    base: Arc<BaseUrl>,
    client: Client,
}

impl Reader {
    /// A reader of what lies below `base`. Connects to nothing. A redirect is never followed, and no proxy is used.
    ///
    /// # Errors
    /// [`Error::Setup`] if this machine cannot make such connections at all.
    pub fn new(base: BaseUrl) -> Result<Self, Error> {
        let builder = Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .connect_timeout(SILENCE)
            .http1_only()
            .https_only(base.is_encrypted());
        // Without encryption no certificate is looked at, so the system's authorities need not be there.
        let builder = if base.is_encrypted() { builder } else { builder.tls_certs_only([]) };
        let client = builder.build().map_err(|error| Error::of(&base.host(), &error))?;
        Ok(Self { base: Arc::new(base), client })
    }

    /// The URL of a file.
    #[must_use]
    pub fn place(&self, name: &str) -> String {
        self.base.under(name).to_string()
    }

    /// The whole of a file; nothing if the server has none of this name.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it has more than `most` bytes, [`Error::Broken`] for any status but 200, 404 and 410, else what the
    /// connection said.
    pub async fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, Error> {
        let host = self.base.host();
        let silent = || Error::Silent { host: host.clone(), after: SILENCE };
        let request = self.client.get(self.base.under(name)).header(USER_AGENT, AGENT).send();
        let answer = tokio::time::timeout(SILENCE, request).await.map_err(|_| silent())?;
        let mut response = answer.map_err(|error| Error::of(&host, &error))?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND | StatusCode::GONE => return Ok(None),
            status => return Err(Error::Broken { host, why: format!("the server answered `{status}`") }),
        }
        let mut bytes = Vec::new();
        loop {
            let chunk = tokio::time::timeout(SILENCE, response.chunk()).await;
            let chunk = chunk.map_err(|_| Error::Idle { host: host.clone(), after: SILENCE })?;
            let Some(chunk) = chunk.map_err(|error| Error::of(&host, &error))? else { return Ok(Some(bytes)) };
            if (bytes.len() as u64).saturating_add(chunk.len() as u64) > most {
                return Err(Error::TooLarge { host, limit: most });
            }
            bytes.extend_from_slice(&chunk);
        }
    }
}
