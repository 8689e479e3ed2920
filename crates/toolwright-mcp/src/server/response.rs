//! The outcome of a request: the one type that every handler returns.

use crate::jsonrpc::{self, INTERNAL_ERROR, Id, RpcError};
use crate::protocol::{ResultBody, ResultMessage};

/// The outcome of a request.
#[derive(Debug, Clone, Default)]
pub(super) enum Response {
    /// The result of the method, or the questions or the task in its place.
    Result(Box<ResultMessage>),
    /// An error of the protocol.
    Error(RpcError),
    /// The client no longer waits: nothing is sent.
    #[default]
    Cancelled,
}

impl Response {
    /// The line that is sent; `None` when the client no longer waits.
    pub(super) fn into_line(self, id: &Id) -> Option<Vec<u8>> {
        let line = match self {
            Response::Result(result) => jsonrpc::result(id, &result),
            Response::Error(error) => jsonrpc::error(Some(id), &error),
            Response::Cancelled => return None,
        };
        let most = jsonrpc::MAX_MESSAGE_BYTES;
        if line.len() <= most {
            return Some(line);
        }
        let error = RpcError::new(INTERNAL_ERROR, format!("the result is larger than {most} bytes"));
        Some(jsonrpc::error(Some(id), &error))
    }

    /// The response, or this one in place of a cancelled one.
    pub(super) fn or_else(self, otherwise: impl FnOnce() -> Response) -> Response {
        match self {
            Response::Cancelled => otherwise(),
            known => known,
        }
    }
}

impl From<ResultBody> for Response {
    fn from(body: ResultBody) -> Self {
        Response::Result(Box::new(body.into()))
    }
}

impl From<ResultMessage> for Response {
    fn from(result: ResultMessage) -> Self {
        Response::Result(Box::new(result))
    }
}

impl From<RpcError> for Response {
    fn from(error: RpcError) -> Self {
        Response::Error(error)
    }
}

impl<R: Into<Response>> From<Result<R, RpcError>> for Response {
    fn from(outcome: Result<R, RpcError>) -> Self {
        outcome.map_or_else(Response::Error, Into::into)
    }
}
