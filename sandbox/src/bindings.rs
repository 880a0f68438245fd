//! The guest interface, generated from `wit/tool.wit`.

#![expect(missing_docs, clippy::missing_docs_in_private_items, reason = "generated; the words are in wit/tool.wit")]

wasmtime::component::bindgen!({
    path: "wit",
    world: "tool",
    exports: { default: async },
});
