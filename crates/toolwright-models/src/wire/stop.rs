//! The words with which servers say why an answer ended. Servers that stand for others let the words of other
//! formats through, in capitals or not, so all formats read them alike.

use toolwright_core::StopReason;

/// The meaning of a stop reason; `None` when it is unknown.
pub(super) fn stop(word: &str) -> Option<StopReason> {
    Some(match word.to_ascii_lowercase().as_str() {
        "stop" | "end_turn" | "eos" | "eos_token" | "complete" | "finish_reason_unspecified" => {
            StopReason::EndTurn
        }
        "tool_calls" | "tool_call" | "tool_use" | "function_call" | "function_calls" => StopReason::ToolCalls,
        "length" | "max_tokens" | "max_output_tokens" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "model_length" | "model_context_window_exceeded" => StopReason::ContextLength,
        "pause_turn" | "compaction" => StopReason::Paused,
        "content_filter"
        | "content_filtered"
        | "refusal"
        | "guardrail_intervened"
        | "sensitive"
        | "error_toxic"
        | "safety"
        | "recitation"
        | "blocklist"
        | "prohibited_content"
        | "spii"
        | "language"
        | "escalation"
        | "image_safety"
        | "image_prohibited_content"
        | "image_recitation" => StopReason::Refusal,
        // The model wanted a tool, and the vendor stopped it: the model can correct that.
        "malformed_function_call" | "malformed_tool_use" | "unexpected_tool_call" | "too_many_tool_calls" => {
            StopReason::MalformedCall
        }
        // Nothing says that these answers are whole.
        "other"
        | "abort"
        | "aborted"
        | "cancelled"
        | "canceled"
        | "timeout"
        | "interrupted"
        | "error"
        | "network_error"
        | "insufficient_system_resource"
        | "malformed_response"
        | "malformed_model_output"
        | "missing_thought_signature"
        | "no_image"
        | "image_other" => StopReason::Other,
        _ => return None,
    })
}
