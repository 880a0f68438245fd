//! Defects that the simulation must find. Compiled for this crate's own tests alone.

/// A defect of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkDefect {
    /// A data frame is sent twice.
    DoubledFrame,
    /// A credit is booked and not sent.
    LostCredit,
}

/// The defects of one link, and what they need.
#[derive(Debug, Default)]
pub(crate) struct LinkDefects {
    planted: Option<LinkDefect>,
    again: Vec<u8>,
}

impl LinkDefects {
    pub(crate) const fn plant(&mut self, defect: LinkDefect) {
        self.planted = Some(defect);
    }

    /// Keeps the frame that is to go twice.
    pub(crate) fn remember(&mut self, frame: &[u8]) {
        if self.planted == Some(LinkDefect::DoubledFrame) {
            self.planted = None;
            self.again = frame.to_vec();
        }
    }

    /// Writes the frame that goes twice.
    pub(crate) fn repeat(&mut self, out: &mut Vec<u8>) -> bool {
        out.append(&mut self.again);
        !out.is_empty()
    }

    /// Whether every credit is lost.
    pub(crate) fn loses_credit(&self) -> bool {
        self.planted == Some(LinkDefect::LostCredit)
    }
}

thread_local! {
    static STALE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// From now on, members of this thread that are given up take an incarnation that is over.
pub fn plant_stale_renewal(planted: bool) {
    STALE.with(|stale| stale.set(planted));
}

/// Whether that is planted.
pub(crate) fn renews_stale() -> bool {
    STALE.with(std::cell::Cell::get)
}
