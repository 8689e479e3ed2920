//! Models: how one is asked, and with the feature `models`, how one of a vendor is connected.

#[cfg(feature = "models")]
pub use crate::connect::connect_with;
pub use crate::environment::Environment;
#[doc(inline)]
pub use toolwright_core::{
    DeltaSink, DynModel, Model, ModelDelta, ModelError, ModelErrorKind, ModelOptions, ModelReply,
    ModelRequest, StopReason, ToolChoice, Usage,
};
#[cfg(feature = "models")]
#[doc(inline)]
pub use toolwright_models::{
    ConfigError, ConnectError, HttpLimits, ModelConfig, ModelSettings, Offer, Pace, Price, Proxies,
    ProxyError, RetryPolicy, VendorModel, aws, dialect, offered, price, retry, tokens, vendor, wire,
};
