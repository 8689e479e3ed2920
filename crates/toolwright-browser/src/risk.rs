//! What an action on a page may mean outside of it, in seven classes, found by words and by what a form is.

use crate::locate::ElementFacts;
use crate::reading::host_of;

/// A class of actions that a policy may treat apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RiskClass {
    FinancialTransactions,
    SensitiveDataModification,
    CommunicationTool,
    AccountCreation,
    DataModification,
    UserConsentManagement,
    LegalTermsAndAgreements,
}

impl RiskClass {
    /// Its name in rules.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RiskClass::FinancialTransactions => "financial_transactions",
            RiskClass::SensitiveDataModification => "sensitive_data_modification",
            RiskClass::CommunicationTool => "communication_tool",
            RiskClass::AccountCreation => "account_creation",
            RiskClass::DataModification => "data_modification",
            RiskClass::UserConsentManagement => "user_consent_management",
            RiskClass::LegalTermsAndAgreements => "legal_terms_and_agreements",
        }
    }
}

/// Words in English, German, French, Spanish, Italian, Portuguese, Dutch, Polish, Russian, Turkish, Chinese,
/// Japanese and Korean. A word stands alone or begins a name; signs without spaces count anywhere.
const WORDS: [(RiskClass, &[&str]); 6] = [
    (
        RiskClass::FinancialTransactions,
        &[
            "buy",
            "pay",
            "checkout",
            "check out",
            "place order",
            "order now",
            "purchase",
            "donate",
            "subscribe",
            "transfer",
            "send money",
            "kaufen",
            "bezahlen",
            "zahlen",
            "zahlungspflichtig",
            "bestellen",
            "spenden",
            "überweisen",
            "abonnieren",
            "acheter",
            "payer",
            "commander",
            "passer la commande",
            "virement",
            "comprar",
            "pagar",
            "realizar pedido",
            "donar",
            "acquista",
            "compra",
            "paga",
            "ordina",
            "doar",
            "finalizar compra",
            "kopen",
            "betalen",
            "afrekenen",
            "kup",
            "zapłać",
            "zamów",
            "купить",
            "оплатить",
            "заказать",
            "перевести",
            "satın al",
            "öde",
            "sipariş ver",
            "购买",
            "支付",
            "付款",
            "下单",
            "購入",
            "支払",
            "注文",
            "구매",
            "결제",
            "주문",
        ],
    ),
    (
        RiskClass::AccountCreation,
        &[
            "sign up",
            "signup",
            "register",
            "create account",
            "create an account",
            "join now",
            "registrieren",
            "konto erstellen",
            "s'inscrire",
            "créer un compte",
            "registrarse",
            "crear cuenta",
            "registrati",
            "crea account",
            "cadastrar",
            "criar conta",
            "registreren",
            "account aanmaken",
            "zarejestruj",
            "załóż konto",
            "зарегистрироваться",
            "создать аккаунт",
            "kaydol",
            "hesap oluştur",
            "注册",
            "登録",
            "アカウント作成",
            "회원가입",
            "가입",
        ],
    ),
    (
        RiskClass::DataModification,
        &[
            "delete",
            "remove",
            "erase",
            "destroy",
            "discard",
            "wipe",
            "cancel subscription",
            "close account",
            "löschen",
            "entfernen",
            "kündigen",
            "supprimer",
            "effacer",
            "eliminar",
            "borrar",
            "elimina",
            "cancella",
            "rimuovi",
            "excluir",
            "apagar",
            "remover",
            "verwijderen",
            "usuń",
            "удалить",
            "sil",
            "删除",
            "移除",
            "削除",
            "삭제",
            "제거",
        ],
    ),
    (
        RiskClass::CommunicationTool,
        &[
            "send",
            "post",
            "publish",
            "reply",
            "tweet",
            "share",
            "comment",
            "submit review",
            "senden",
            "absenden",
            "veröffentlichen",
            "antworten",
            "teilen",
            "envoyer",
            "publier",
            "répondre",
            "partager",
            "enviar",
            "publicar",
            "responder",
            "compartir",
            "invia",
            "pubblica",
            "rispondi",
            "condividi",
            "compartilhar",
            "verzenden",
            "versturen",
            "plaatsen",
            "wyślij",
            "opublikuj",
            "odpowiedz",
            "отправить",
            "опубликовать",
            "ответить",
            "gönder",
            "yayınla",
            "paylaş",
            "发送",
            "发布",
            "回复",
            "送信",
            "投稿",
            "返信",
            "보내기",
            "게시",
            "답장",
        ],
    ),
    (
        RiskClass::LegalTermsAndAgreements,
        &[
            "i agree",
            "agree to",
            "accept terms",
            "accept the terms",
            "terms of service",
            "terms and conditions",
            "agb",
            "nutzungsbedingungen",
            "ich stimme zu",
            "j'accepte les conditions",
            "conditions générales",
            "acepto los términos",
            "términos y condiciones",
            "accetto i termini",
            "termini e condizioni",
            "aceito os termos",
            "algemene voorwaarden",
            "akceptuję regulamin",
            "regulamin",
            "принимаю условия",
            "şartları kabul",
            "同意条款",
            "服务条款",
            "利用規約",
            "이용약관",
        ],
    ),
    (
        RiskClass::UserConsentManagement,
        &[
            "accept all",
            "accept cookies",
            "allow all",
            "reject all",
            "cookie",
            "alle akzeptieren",
            "alle ablehnen",
            "zustimmen",
            "tout accepter",
            "tout refuser",
            "aceptar todo",
            "rechazar todo",
            "accetta tutti",
            "rifiuta tutti",
            "aceitar tudo",
            "alles accepteren",
            "zaakceptuj wszystko",
            "принять все",
            "tümünü kabul et",
            "全部接受",
            "すべて同意",
            "모두 동의",
        ],
    ),
];

/// The class of an action on an element, if it has one.
pub(crate) fn risk_of(facts: &ElementFacts, typing: bool) -> Option<RiskClass> {
    let autocomplete = facts.autocomplete.to_lowercase();
    if autocomplete.split_whitespace().any(|token| token.starts_with("cc-")) {
        return Some(RiskClass::FinancialTransactions);
    }
    if typing {
        let secret = facts.password || autocomplete.contains("one-time-code");
        return secret.then_some(RiskClass::SensitiveDataModification);
    }
    let name = facts.name.to_lowercase();
    let by_words = WORDS.iter().find(|(_, words)| words.iter().any(|word| has_word(&name, word)));
    if let Some((class, _)) = by_words {
        return Some(*class);
    }
    // A form that carries what was typed to another site.
    let submits = facts.role == "button" && !facts.action.is_empty() && facts.input_type != "button";
    let elsewhere = submits && !host_of(&facts.action).eq_ignore_ascii_case(&facts.host);
    (elsewhere && facts.method.eq_ignore_ascii_case("post")).then_some(RiskClass::CommunicationTool)
}

/// Whether a name has a word, with no letter before it and none behind it. Scripts without spaces have no
/// such borders.
fn has_word(name: &str, word: &str) -> bool {
    if word.chars().all(|c| c as u32 >= 0x2e80) {
        return name.contains(word);
    }
    name.match_indices(word).any(|(at, _)| {
        let before = name.get(..at).and_then(|text| text.chars().next_back());
        let after = name.get(at + word.len()..).and_then(|text| text.chars().next());
        let border = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        border(before) && border(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn button(name: &str) -> ElementFacts {
        ElementFacts { role: "button".into(), name: name.into(), ..ElementFacts::default() }
    }

    #[test]
    fn purchases_deletions_and_consents_are_classed_in_many_languages() {
        use RiskClass::*;
        for (name, class) in [
            ("Buy now", Some(FinancialTransactions)),
            ("Pay $12.00", Some(FinancialTransactions)),
            ("Jetzt kaufen", Some(FinancialTransactions)),
            ("Zahlungspflichtig bestellen", Some(FinancialTransactions)),
            ("Passer la commande", Some(FinancialTransactions)),
            ("Pagar ahora", Some(FinancialTransactions)),
            ("Acquista ora", Some(FinancialTransactions)),
            ("Finalizar compra", Some(FinancialTransactions)),
            ("Afrekenen", Some(FinancialTransactions)),
            ("Zapłać teraz", Some(FinancialTransactions)),
            ("Купить сейчас", Some(FinancialTransactions)),
            ("Satın al", Some(FinancialTransactions)),
            ("立即购买", Some(FinancialTransactions)),
            ("今すぐ購入", Some(FinancialTransactions)),
            ("지금 구매", Some(FinancialTransactions)),
            ("Delete account", Some(DataModification)),
            ("Konto löschen", Some(DataModification)),
            ("Supprimer le compte", Some(DataModification)),
            ("アカウントを削除", Some(DataModification)),
            ("Create an account", Some(AccountCreation)),
            ("Send message", Some(CommunicationTool)),
            ("I agree to the terms of service", Some(LegalTermsAndAgreements)),
            ("Accept all", Some(UserConsentManagement)),
            ("Search", None),
            ("Payload", None),
            ("Next page", None),
            ("Sender settings", None),
        ] {
            assert_eq!(risk_of(&button(name), false), class, "{name}");
        }
    }

    #[test]
    fn fields_of_cards_and_passwords_and_foreign_forms_are_classed() {
        let card = ElementFacts { autocomplete: "section-a cc-number".into(), ..ElementFacts::default() };
        assert_eq!(risk_of(&card, true), Some(RiskClass::FinancialTransactions));
        let password = ElementFacts { password: true, ..ElementFacts::default() };
        assert_eq!(risk_of(&password, true), Some(RiskClass::SensitiveDataModification));
        let mut go = button("Go");
        go.host = "a.example".into();
        go.method = "post".into();
        go.action = "https://a.example/x".into();
        assert_eq!(risk_of(&go, false), None);
        go.action = "https://b.example/x".into();
        assert_eq!(risk_of(&go, false), Some(RiskClass::CommunicationTool));
    }
}
