//! The expression that makes a `ToolDef`: the type of the arguments, what a model is told, how the runtime
//! treats a call, and the call itself.

use std::time::Duration;

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Expr, ExprLit, Ident, Lit, LitBool, LitStr, Path, Type};

use crate::check::{SelfForm, description, self_form};
use crate::parse::options::DefaultValue;
use crate::parse::{Parameter, ParameterRole, Passing, SandboxForm, ToolFn, ToolImpl, named};

/// The definition of a function.
pub(super) fn of_function(tool: &ToolFn, core: &Path) -> TokenStream {
    let name = tool.ident();
    let definition = Definition {
        tool,
        core,
        name: tool.name(),
        category: tool.options.category.as_ref(),
        function: quote! { #name::run },
        receiver: SelfForm::Absent,
        self_type: None,
    };
    definition.write()
}

/// What the function is called inside the one that makes the tool.
pub(super) const RUN: &str = "__toolwright_run";

/// The definition of a function that takes what the tool is made with.
pub(super) fn of_function_with_setup(tool: &ToolFn, core: &Path) -> TokenStream {
    let run = format_ident!("{RUN}");
    let definition = Definition {
        tool,
        core,
        name: tool.name(),
        category: tool.options.category.as_ref(),
        function: quote! { #run },
        receiver: SelfForm::Absent,
        self_type: None,
    };
    definition.write()
}

/// The definition of a method; `self` is an `Arc` of the type.
pub(super) fn of_method(set: &ToolImpl, tool: &ToolFn, core: &Path) -> TokenStream {
    let name = tool.ident();
    let prefix = set.options.prefix.as_ref().map(LitStr::value).unwrap_or_default();
    let definition = Definition {
        tool,
        core,
        name: format!("{prefix}{}", tool.name()),
        category: tool.options.category.as_ref().or(set.options.category.as_ref()),
        function: quote! { Self::#name },
        receiver: self_form(tool),
        self_type: Some(&set.block.self_ty),
    };
    definition.write()
}

struct Definition<'a> {
    tool: &'a ToolFn,
    core: &'a Path,
    name: String,
    category: Option<&'a LitStr>,
    function: TokenStream,
    receiver: SelfForm,
    /// What `Self` means, where it can be named.
    self_type: Option<&'a Type>,
}

impl Definition<'_> {
    fn write(&self) -> TokenStream {
        let arguments = self.arguments();
        let spec = self.spec();
        let code = self.code();
        let policy = self.policy();
        let wrappers = self.wrappers();
        let core = self.core;
        let setup = self.setup().map(|(parameter, passing)| {
            let (kept, ident) = (kept_setup(parameter), &parameter.ident);
            match passing {
                Passing::Borrowed => quote! {
                    let #kept = ::std::sync::Arc::new(::core::clone::Clone::clone(#ident));
                },
                Passing::Owned => quote! { let #kept = ::std::sync::Arc::new(#ident); },
            }
        });
        let finish = self.tool.options.finish.as_ref().map(|finish| {
            let setup = self.setup().map(|(parameter, _)| kept_setup(parameter));
            quote_spanned! { finish.span() => let __def = #finish(__def #(, &*#setup)*); }
        });
        quote! {
            {
                #(#setup)*
                #arguments
                #spec
                let __def = #core::__private::ToolDef::from_fn(__spec, #code);
                #policy
                #wrappers
                #finish
                __def
            }
        }
    }

    /// What the tool is made with.
    fn setup(&self) -> impl Iterator<Item = (&Parameter, Passing)> {
        self.tool.parameters.iter().filter_map(|parameter| match parameter.role {
            ParameterRole::Setup(passing) => Some((parameter, passing)),
            _ => None,
        })
    }

    fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.tool.parameters.iter().filter(|parameter| parameter.role == ParameterRole::Argument)
    }

    /// The type of the arguments: serde reads it, schemars describes it.
    fn arguments(&self) -> TokenStream {
        let core = self.core;
        let serde = crate_text(core, "serde");
        let schemars = crate_text(core, "schemars");
        let fields = self.parameters().map(|parameter| self.field(parameter));
        let defaults = self.parameters().filter_map(|parameter| self.default_function(parameter));
        quote! {
            #[derive(#core::__private::serde::Deserialize, #core::__private::schemars::JsonSchema)]
            #[serde(crate = #serde, rename = "arguments", deny_unknown_fields)]
            #[schemars(crate = #schemars)]
            struct __ToolwrightArguments { #(#fields,)* }
            #(#defaults)*
        }
    }

    fn field(&self, parameter: &Parameter) -> TokenStream {
        let Parameter { ident, options, passed_on, .. } = parameter;
        let ty = self.without_self(&parameter.ty);
        let description = description(self.tool, parameter).map(|text| {
            let text = self.without_self(text);
            quote! { #[schemars(description = #text)] }
        });
        let rename = options.rename.as_ref().map(|name| quote! { #[serde(rename = #name)] });
        let aliases = options.aliases.iter().map(|alias| quote! { #[serde(alias = #alias)] });
        let default = stated_default(parameter).map(|default| match default {
            DefaultValue::OfType => quote! { #[serde(default)] },
            DefaultValue::Value(_) => {
                let function = default_name(ident).to_string();
                quote! { #[serde(default = #function)] }
            }
        });
        let keywords = self.keywords(parameter);
        let keywords = (!keywords.is_empty()).then(|| quote! { #[schemars(extend(#(#keywords),*))] });
        quote! { #description #rename #(#aliases)* #default #keywords #(#passed_on)* #ident: #ty }
    }

    /// The options that become keywords of JSON Schema, which the runtime enforces.
    fn keywords(&self, parameter: &Parameter) -> Vec<TokenStream> {
        let options = &parameter.options;
        let bounds = options.bounds.iter().map(|bound| {
            let keyword = match bound.key.to_string().as_str() {
                "min" => "minimum",
                "max" => "maximum",
                "exclusive_min" => "exclusiveMinimum",
                "exclusive_max" => "exclusiveMaximum",
                "min_length" => "minLength",
                "max_length" => "maxLength",
                "min_items" => "minItems",
                _ => "maxItems",
            };
            let value = self.without_self(&bound.value);
            quote! { #keyword = #value }
        });
        let pattern = options.pattern.as_ref().map(|pattern| quote! { "pattern" = #pattern });
        let format = options.format.as_ref().map(|format| quote! { "format" = #format });
        let examples = (!options.examples.is_empty()).then(|| {
            let examples = options.examples.iter().map(|example| self.without_self(example));
            quote! { "examples" = [#(#examples),*] }
        });
        bounds.chain(pattern).chain(format).chain(examples).collect()
    }

    fn default_function(&self, parameter: &Parameter) -> Option<TokenStream> {
        let Some(DefaultValue::Value(value)) = stated_default(parameter) else { return None };
        let function = default_name(&parameter.ident);
        let ty = self.without_self(&parameter.ty);
        let text = matches!(&**value, Expr::Lit(ExprLit { lit: Lit::Str(_), .. }));
        let optional = named(&parameter.ty).is_some_and(|(name, _)| name == "Option");
        let literal = matches!(&**value, Expr::Lit(_));
        let value = self.without_self(value);
        let value = if text {
            quote! { ::core::convert::Into::into(#value) }
        } else {
            value
        };
        let value = if literal && optional {
            quote! { ::core::option::Option::Some(#value) }
        } else {
            value
        };
        Some(quote! {
            #[allow(non_snake_case, clippy::useless_conversion, reason = "named after a parameter")]
            fn #function() -> #ty { #value }
        })
    }

    /// What a model is told.
    fn spec(&self) -> TokenStream {
        let (core, name, options) = (self.core, &self.name, &self.tool.options);
        let description = match &options.description {
            Some(description) => description.to_token_stream(),
            None => self.tool.docs.description.to_token_stream(),
        };
        let output = self.output_schema();
        let title = options.title.as_ref().map(|title| {
            quote! { __spec.annotations.title = ::core::option::Option::Some(::std::string::String::from(#title)); }
        });
        let flags = [
            ("read_only", &options.read_only),
            ("destructive", &options.destructive),
            ("idempotent", &options.idempotent),
            ("open_world", &options.open_world),
        ];
        let flags = flags.into_iter().filter_map(|(name, flag)| {
            let (name, flag) = (format_ident!("{name}"), flag.as_ref()?);
            Some(quote! { __spec.annotations.#name = ::core::option::Option::Some(#flag); })
        });
        quote! {
            #[allow(unused_mut, reason = "a tool may say nothing more about itself")]
            let mut __spec = #core::__private::ToolSpec::new(#name, #description)
                .with_parameters_of::<__ToolwrightArguments>();
            #output
            #title
            #(#flags)*
        }
    }

    /// The schema of the result. A type that cannot be named has none.
    fn output_schema(&self) -> Option<TokenStream> {
        let output = self.tool.output().filter(|output| !hides_its_type(output.to_token_stream()))?;
        if self.tool.signature.generics.lifetimes().next().is_some() {
            return None;
        }
        let core = self.core;
        Some(quote! {
            __spec.output_schema = {
                #[allow(unused_imports, reason = "which of them is used depends on the type")]
                use #core::__private::{NoSchema as _, ObjectSchema as _, ResultObjectSchema as _, StructuredSchema as _};
                (&&&&#core::__private::ReturnType::<#output>(::core::marker::PhantomData)).schema()
            };
        })
    }

    /// The closure that is called.
    fn code(&self) -> TokenStream {
        let core = self.core;
        let blocking = self.tool.signature.asyncness.is_none();
        let work = self.work();
        let share = (self.receiver != SelfForm::Absent).then(|| {
            quote! { let __this = ::std::sync::Arc::clone(&__this); }
        });
        let captured = (self.receiver != SelfForm::Absent).then(|| {
            quote! { let __this = ::std::sync::Arc::clone(self); }
        });
        let setup: Vec<Ident> = self.setup().map(|(parameter, _)| kept_setup(parameter)).collect();
        let future = if blocking {
            let owned = self.needs_context().then(|| {
                quote! { let __context = ::core::clone::Clone::clone(__context); }
            });
            let borrowed = self.needs_context().then(|| quote! { let __context = &__context; });
            quote! {
                #owned
                ::std::boxed::Box::pin(#core::__private::run_blocking(move || { #borrowed #work }))
            }
        } else {
            quote! { ::std::boxed::Box::pin(async move { #work }) }
        };
        quote! {
            {
                #captured
                #(let #setup = ::std::sync::Arc::clone(&#setup);)*
                move |__context: &#core::__private::ToolContext, __arguments: #core::__private::serde_json::Value| {
                    #share
                    #(let #setup = ::std::sync::Arc::clone(&#setup);)*
                    #future
                }
            }
        }
    }

    fn needs_context(&self) -> bool {
        let needs = |role: &ParameterRole| !matches!(role, ParameterRole::Argument | ParameterRole::Setup(_));
        self.tool.parameters.iter().any(|parameter| needs(&parameter.role))
    }

    /// Reads the arguments, calls the function and converts what it returns.
    fn work(&self) -> TokenStream {
        let (core, function) = (self.core, &self.function);
        let sandbox =
            self.tool.parameters.iter().any(|parameter| matches!(parameter.role, ParameterRole::Sandbox(_)));
        let sandbox = sandbox.then(|| quote! { let __sandbox = __context.sandbox()?; });
        let receiver = match self.receiver {
            SelfForm::Absent | SelfForm::Other => None,
            SelfForm::Borrowed => Some(quote! { &*__this, }),
            SelfForm::BorrowedShared => Some(quote! { &__this, }),
            SelfForm::Shared => Some(quote! { ::std::sync::Arc::clone(&__this), }),
        };
        let values = self.tool.parameters.iter().map(|parameter| self.value(parameter));
        let wait = self.tool.signature.asyncness.map(|_| quote! { .await });
        // At the return type, because that is what must be changed when it does not convert.
        let place = self.tool.output().map_or_else(|| self.tool.ident().span(), syn::spanned::Spanned::span);
        let split = quote_spanned! { place => split };
        let convert = quote_spanned! { place => convert };
        quote! {
            #[allow(unused_imports, reason = "which of them is used depends on the type")]
            use #core::__private::{ConvertDirectly as _, ConvertSerialized as _, SplitOther as _, SplitResult as _};
            let __arguments = #core::__private::schema::read_arguments::<__ToolwrightArguments>(__arguments)?;
            #sandbox
            let __returned = #function(#receiver #(#values),*) #wait;
            let __value = (&&#core::__private::Returned::new(__returned)).#split()?;
            (&&#core::__private::Returned::new(__value)).#convert()
        }
    }

    fn value(&self, parameter: &Parameter) -> TokenStream {
        let (core, ident) = (self.core, &parameter.ident);
        match &parameter.role {
            ParameterRole::Argument => quote! { __arguments.#ident },
            ParameterRole::Context(Passing::Borrowed) => quote! { __context },
            ParameterRole::Context(Passing::Owned) => quote! { ::core::clone::Clone::clone(__context) },
            ParameterRole::State(ty) => quote! { #core::__private::State(__context.state::<#ty>()?) },
            ParameterRole::Setup(passing) => {
                let kept = kept_setup(parameter);
                match passing {
                    Passing::Borrowed => quote! { &*#kept },
                    Passing::Owned => quote! { ::core::clone::Clone::clone(&*#kept) },
                }
            }
            ParameterRole::Sandbox(SandboxForm::Borrowed) => quote! { &*__sandbox },
            ParameterRole::Sandbox(SandboxForm::BorrowedShared) => quote! { &__sandbox },
            ParameterRole::Sandbox(SandboxForm::Shared) => quote! { ::std::sync::Arc::clone(&__sandbox) },
        }
    }

    /// How the runtime treats a call, and how it is shown.
    fn policy(&self) -> TokenStream {
        let (core, options) = (self.core, &self.tool.options);
        let mut changes = Vec::new();
        if let Some(parallel) = &options.parallel {
            changes.push(quote! { __policy.parallel = ::core::option::Option::Some(#parallel); });
        }
        if let Some(timeout) = options.timeout.map(duration) {
            changes.push(quote! { __policy.timeout = ::core::option::Option::Some(#timeout); });
        }
        if let Some(bytes) = &options.max_output {
            changes.push(quote! { __policy.max_output = ::core::option::Option::Some(#bytes); });
        }
        if let Some(category) = self.category {
            changes.push(quote! {
                __policy.category = ::core::option::Option::Some(::std::sync::Arc::from(#category));
            });
        }
        let flags = [
            ("sandboxed", &options.sandboxed),
            ("return_direct", &options.return_direct),
            ("confidential", &options.confidential),
        ];
        for (name, flag) in flags {
            if let Some(flag) = flag.as_ref().filter(|flag| LitBool::value(flag)) {
                let name = format_ident!("{name}");
                changes.push(quote! { __policy.#name = #flag; });
            }
        }
        for parameter in self.parameters() {
            let (name, aliases) = parameter.aliases();
            changes.extend(aliases.into_iter().map(|alias| {
                quote! {
                    __policy.aliases.push((::std::sync::Arc::from(#alias), ::std::sync::Arc::from(#name)));
                }
            }));
        }
        let viewer = options.viewer.as_ref().map(|viewer| {
            let view = quote_spanned! { viewer.span() => #viewer(__arguments) };
            quote! {
                let __def = __def.with_viewer(
                    |__arguments: &#core::__private::serde_json::Value| {
                        #core::__private::IntoCallView::into_call_view(#view)
                    },
                );
            }
        });
        let edit =
            (!changes.is_empty()).then(|| quote! { let __def = __def.edit(|_, __policy| { #(#changes)* }); });
        quote! { #edit #viewer }
    }

    /// The cache is outside the rate limit: a call that is answered from it takes no turn.
    fn wrappers(&self) -> TokenStream {
        let (core, options) = (self.core, &self.tool.options);
        let limited = options.rate_limit.map(|(calls, period)| {
            let period = duration(period);
            quote! { let __def = #core::__private::ToolExt::rate_limited(__def, #calls, #period); }
        });
        let cached = options.cache.map(|ttl| {
            let ttl = duration(ttl);
            quote! { let __def = #core::__private::ToolExt::cached(__def, #ttl); }
        });
        quote! { #limited #cached }
    }

    /// The tokens with `Self` written out, because items inside a method do not know it.
    fn without_self(&self, tokens: impl ToTokens) -> TokenStream {
        match self.self_type {
            Some(ty) => replace_self(tokens.to_token_stream(), ty),
            None => tokens.to_token_stream(),
        }
    }
}

fn replace_self(tokens: TokenStream, ty: &Type) -> TokenStream {
    let replaced = tokens.into_iter().map(|token| match token {
        TokenTree::Ident(ident) if ident == "Self" => ty.to_token_stream(),
        TokenTree::Group(group) => {
            let mut inside = proc_macro2::Group::new(group.delimiter(), replace_self(group.stream(), ty));
            inside.set_span(group.span());
            TokenTree::Group(inside).into()
        }
        token => token.into(),
    });
    replaced.collect()
}

/// The default a model is told. An `Option` is nothing without being told so.
fn stated_default(parameter: &Parameter) -> Option<&DefaultValue> {
    let optional = named(&parameter.ty).is_some_and(|(name, _)| name == "Option");
    let nothing = |default: &DefaultValue| match default {
        DefaultValue::OfType => true,
        DefaultValue::Value(value) => matches!(&**value, Expr::Path(path) if path.path.is_ident("None")),
    };
    parameter.options.default.as_ref().filter(|default| !(optional && nothing(default)))
}

/// Where what the tool is made with is kept for its calls.
fn kept_setup(parameter: &Parameter) -> Ident {
    format_ident!("__toolwright_setup_{}", parameter.ident.unraw().to_string().trim_start_matches('_'))
}

fn default_name(parameter: &Ident) -> Ident {
    let parameter = parameter.unraw();
    format_ident!("__toolwright_default_{parameter}")
}

/// The path of a re-exported crate, as serde and schemars want it.
pub(super) fn crate_text(core: &Path, name: &str) -> String {
    let name = format_ident!("{name}");
    quote!(#core::__private::#name).to_string().replace(' ', "")
}

/// True for `impl Trait`, which cannot be named outside the function.
fn hides_its_type(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == "impl",
        TokenTree::Group(group) => hides_its_type(group.stream()),
        _ => false,
    })
}

fn duration(duration: Duration) -> TokenStream {
    let (seconds, nanoseconds) = (duration.as_secs(), duration.subsec_nanos());
    quote! { ::core::time::Duration::new(#seconds, #nanoseconds) }
}
