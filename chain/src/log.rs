use ephor_base::*;
use crate::{Durable, Intent, record::Record};
#[derive(Clone)]
pub struct Log;
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct AppendError;
#[derive(Clone, Copy)]
pub struct Head { pub size: u64, pub root: Digest }
impl Log {
  pub async fn note(&self, _r: Record) -> Result<Receipt, AppendError> { loop {} }
  pub async fn append(&self, _r: Record) -> Result<Receipt, AppendError> { loop {} }
  pub async fn intend(&self, _r: Record, _i: Intent) -> Result<Durable<Intent>, AppendError> { loop {} }
  pub async fn settle(&self, _s: Seq, _r: Record) -> Result<Receipt, AppendError> { loop {} }
  pub fn head(&self) -> Head { loop {} }
}
