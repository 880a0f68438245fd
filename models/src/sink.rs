//! Where a provider shows its answer while it comes.

use ephor_kernel::{Preview, PreviewItem};

/// Takes what a watcher may see. Waits while the watcher is behind.
pub(crate) trait Sink: Send {
    /// Shows `item`.
    fn show(&mut self, item: PreviewItem) -> impl Future<Output = ()> + Send;
}

impl Sink for &Preview {
    async fn show(&mut self, item: PreviewItem) {
        Preview::show(self, item).await;
    }
}

/// For what has no watcher.
pub(crate) struct Unseen;

impl Sink for Unseen {
    async fn show(&mut self, _: PreviewItem) {}
}

#[cfg(test)]
impl Sink for Vec<PreviewItem> {
    async fn show(&mut self, item: PreviewItem) {
        self.push(item);
    }
}
