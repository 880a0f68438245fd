//! The guest interface, generated from `wit/tool.wit`.

wasmtime::component::bindgen!({
    path: "wit",
    world: "tool",
    imports: { default: trappable },
    exports: { default: async },
});
