//! Paths as the tools take them.

use crate::exports::ephor::tool::guest::Failure;
use crate::text::visible;

/// A path relative to the workspace, in its one spelling: no empty, `.` or `..` part; empty for the workspace itself.
///
/// `..` is resolved by the text alone, before any symbolic link is followed, so that the path that was judged and shown
/// is the path that is touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(String);

impl Path {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        if text.is_empty() {
            return Err(Failure::InvalidArguments("`path` is empty; `.` is the workspace itself".to_owned()));
        }
        if text.contains('\0') {
            return Err(Failure::InvalidArguments(format!("`{}` holds a NUL, which no path can", visible(text))));
        }
        if text.starts_with('/') {
            return Err(Failure::Refused(format!(
                "`{}` is an absolute path; give one relative to the workspace",
                visible(text)
            )));
        }
        let mut parts = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    if parts.pop().is_none() {
                        return Err(Failure::Refused(format!("`{}` leads out of the workspace", visible(text))));
                    }
                }
                part => parts.push(part),
            }
        }
        Ok(Self(parts.join("/")))
    }

    /// What WASI is given: it has no name for the empty path.
    pub(crate) fn as_wasi(&self) -> &str {
        if self.0.is_empty() { "." } else { &self.0 }
    }

    pub(crate) fn is_workspace(&self) -> bool {
        self.0.is_empty()
    }

    /// Relative to the workspace, `/` between parts, empty for the workspace itself.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// As a model reads it.
    pub(crate) fn shown(&self) -> String {
        visible(self.as_wasi())
    }
}
