//! Connections that have not shown who they are: they have little time and only part of the room, and make
//! way for newer ones, so that they cannot keep out clients that may use a server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The connections of a server whose clients are not known yet.
pub struct Lobby {
    most: usize,
    guests: Mutex<Guests>,
}

#[derive(Default)]
struct Guests {
    next: u64,
    /// In the order in which they came.
    waiting: VecDeque<(u64, watch::Sender<bool>)>,
}

/// One connection. It leaves the lobby when it is [admitted](LobbyGuest::admit) or dropped.
pub struct LobbyGuest {
    lobby: Arc<Lobby>,
    number: u64,
    turned_out: watch::Receiver<bool>,
}

impl Lobby {
    /// A lobby for so many connections at once, one at least.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Lobby { most: most.max(1), guests: Mutex::default() })
    }

    /// Lets a connection in. Where the lobby is full, the one that waits longest is turned out.
    pub fn enter(self: &Arc<Self>) -> LobbyGuest {
        let (sender, turned_out) = watch::channel(false);
        let mut guests = self.guests();
        if guests.waiting.len() >= self.most
            && let Some((_, oldest)) = guests.waiting.pop_front()
        {
            oldest.send_replace(true);
        }
        let number = guests.next;
        guests.next += 1;
        guests.waiting.push_back((number, sender));
        drop(guests);
        LobbyGuest { lobby: self.clone(), number, turned_out }
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LobbyGuest {
    /// The client has shown who it is: nothing turns the connection out any more.
    pub fn admit(&self) {
        self.lobby.guests().waiting.retain(|(number, _)| *number != self.number);
    }

    /// Whether the client has not shown who it is.
    pub fn is_waiting(&self) -> bool {
        self.lobby.guests().waiting.iter().any(|(number, _)| *number == self.number)
    }

    /// Ends when the connection must be closed to make room; never, once it is admitted.
    pub async fn turned_out(&self) {
        if self.turned_out.clone().wait_for(|out| *out).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for LobbyGuest {
    fn drop(&mut self) {
        self.admit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_out(guest: &LobbyGuest) -> bool {
        *guest.turned_out.borrow()
    }

    #[test]
    fn a_full_lobby_turns_out_the_oldest_and_never_who_was_admitted() {
        let lobby = Lobby::new(2);
        let (known, old, new) = (lobby.enter(), lobby.enter(), {
            lobby.guests().waiting.front().map(|(number, _)| *number).unwrap_or_default()
        });
        assert_eq!(new, known.number);
        known.admit();
        let second = lobby.enter();
        assert!(!is_out(&old) && !is_out(&second));
        let third = lobby.enter();
        assert!(is_out(&old) && !is_out(&second) && !is_out(&third) && !is_out(&known));
        assert!(!known.is_waiting() && !old.is_waiting() && second.is_waiting());
        drop(second);
        let fourth = lobby.enter();
        assert!(!is_out(&third) && !is_out(&fourth));
    }
}
