//! `builtin/scout`.
use crate::{meter::Meter, sink::Sink};
use ephor_base::{ModelAnswer, ModelTask};
pub(crate) async fn ask(_: &ModelTask, _: &mut impl Sink, _: &mut Meter) -> ModelAnswer {
    ModelAnswer::default()
}
