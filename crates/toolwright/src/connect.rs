//! Connecting the model of a vendor by its name.

use toolwright_core::Error;
use toolwright_models::{ModelSettings, VendorModel};

use crate::model::Environment;

/// Makes the model of a name such as `anthropic/claude-sonnet-4-5`, with the key and the address in the
/// vendor's own variables of the process. Nothing is sent yet.
///
/// ```no_run
/// # fn open() -> Result<(), toolwright::Error> {
/// let model = toolwright::connect("ollama/qwen3")?;
/// # Ok(())
/// # }
/// ```
pub fn connect(name: &str) -> Result<VendorModel, Error> {
    connect_with(name, ModelSettings::new(), &Environment::of_process())
}

/// Makes the model of a name with these settings. What they leave open is in the variables of `environment`;
/// those of the process are not read.
///
/// ```
/// use toolwright::model::{Environment, ModelSettings, connect_with};
///
/// let environment = Environment::of([("ANTHROPIC_API_KEY", "sk-...")]);
/// let model = connect_with("anthropic/claude-sonnet-4-5", ModelSettings::new(), &environment)?;
/// assert_eq!(model.vendor().name, "anthropic");
/// let missing = connect_with("openai/gpt-5", ModelSettings::new(), &environment).unwrap_err();
/// assert!(missing.is_missing_variable());
/// # Ok::<(), toolwright::Error>(())
/// ```
pub fn connect_with(
    name: &str,
    settings: ModelSettings,
    environment: &Environment,
) -> Result<VendorModel, Error> {
    Ok(toolwright_models::connect(name, settings, |variable| environment.get(variable))?)
}
