//! One request and its result, over either transport.

use ephor_base::arguments::Value;

use super::{
    Client,
    error::{CallError, HttpFault},
    link::{Link, Waiting},
};
use crate::{
    exchange::{Progress, Wait},
    revision::{Revision, request_context},
    wire::{Returned, object, request},
};

impl Client {
    /// Asks the server, as the revision has it.
    pub(super) async fn ask(
        &self,
        method: &str,
        params: Value,
        headers: Vec<(String, String)>,
        wait: Wait,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Value, CallError> {
        ask(&self.link, self.revision(), method, params, headers, wait, progress).await
    }
}

/// Asks the server of `link` in the words of `revision`. `headers` are those of revisions without a handshake.
pub(super) async fn ask(
    link: &Link,
    revision: Revision,
    method: &str,
    params: Value,
    headers: Vec<(String, String)>,
    wait: Wait,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Value, CallError> {
    // Where there is no handshake, closing the response tells the server.
    let silent = matches!(link, Link::Http(_)) && revision.is_stateless();
    let waiting = Waiting::open(link.shared(), if silent { Wait::Silent } else { wait }).ok_or(CallError::Busy)?;
    let body = request(waiting.id, method, with_context(params, revision, method, waiting.id));
    let most = link.limits().message_bytes;
    if body.len() > most {
        waiting.retire();
        return Err(CallError::Large { bytes: body.len(), most });
    }
    let returned = match link {
        Link::Stream(shared) => {
            if !shared.with(|exchange| exchange.send(waiting.id, body)) {
                waiting.retire();
                return Err(CallError::Busy);
            }
            waiting.end(progress).await?
        }
        Link::Http(http) => {
            let returned = http.ask(&waiting, revision, method, headers, body, progress).await;
            returned.inspect_err(|error| {
                if !may_go_on(error) {
                    waiting.retire();
                }
            })?
        }
    };
    match returned {
        Returned::Result(result) => complete(result),
        Returned::Refusal(refusal) => Err(refusal.into()),
        Returned::Lie(lie) => Err(lie.into()),
    }
}

/// Whether a server may still be at work on a request whose exchange has failed so.
const fn may_go_on(error: &CallError) -> bool {
    matches!(error, CallError::Closed(_) | CallError::Http(HttpFault::Broken(_)))
}

/// The parameters, with what the revision has stand beside them.
fn with_context(params: Value, revision: Revision, method: &str, id: u64) -> Value {
    let Value::Object(mut params) = params else { return params };
    let mut meta = std::collections::BTreeMap::new();
    if revision.is_stateless() && method != "initialize" {
        meta.extend(request_context(revision).map(|(name, value)| (name.to_owned(), value)));
    }
    if method == "tools/call" {
        meta.insert("progressToken".to_owned(), Value::Integer(id.into()));
    }
    if !meta.is_empty() {
        params.insert("_meta".to_owned(), Value::Object(meta));
    }
    Value::Object(params)
}

/// A result, if it is the last word.
fn complete(result: Value) -> Result<Value, CallError> {
    let kind = match &result {
        Value::Object(map) => map.get("resultType"),
        _ => None,
    };
    match kind {
        None => Ok(result),
        Some(Value::Text(kind)) if kind == "complete" => Ok(result),
        Some(Value::Text(kind)) if kind == "input_required" => Err(CallError::InputRequired),
        Some(_) => Err(crate::wire::Lie::new("result.resultType", "a type that this client knows").into()),
    }
}

/// An empty object, for requests without parameters.
pub(super) fn nothing() -> Value {
    object([])
}
