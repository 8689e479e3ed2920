//! The program as a person meets it: command, stdout, stderr, exit code.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "these are tests")]

mod approval;
mod ask;
mod browser;
mod call;
mod changes;
mod chat;
mod chat_input;
mod chat_record;
mod clients;
mod commands;
mod data_tools;
mod discovery;
mod elicitation;
mod eval;
mod examples;
mod fake_model;
mod file_writes;
mod forwarding;
mod hooks;
mod hostile_folders;
mod instances;
mod mcp;
mod mistakes;
mod pages;
mod pictures;
mod policy_layers;
mod proxies;
mod python;
mod read;
mod records;
mod replay;
mod run_settings;
mod sandbox;
mod secrets_in_files;
mod serve;
mod servers;
mod signals;
mod starter;
mod step;
mod support;
mod terminal;
mod trust_corpus;
mod trust_door;
mod variables;
mod view;

use support::{NO_SERVERS, RUN_ID, fed, json, json_with, last_session, show, show_in, show_with, trust};
