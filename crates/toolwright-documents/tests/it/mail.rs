//! Mail with alternatives, attachments and a mail inside.

use crate::{markdown, open};

#[test]
fn a_mail_with_an_attachment_and_a_forwarded_mail() {
    let mail = "From: Ada <ada@example.org>\r\nTo: bob@example.org\r\nSubject: =?UTF-8?B?R3LDvMOfZQ==?=\r\nDate: Mon, 2 Nov 2026 10:00:00 +0000\r\n\
        MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"out\"\r\n\r\n--out\r\nContent-Type: multipart/alternative; boundary=in\r\n\r\n\
        --in\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nHello B=C3=B6b,\r\n\r\nsee below.\r\n\
        --in\r\nContent-Type: text/html\r\n\r\n<p>Hello</p>\r\n--in--\r\n--out\r\nContent-Type: text/csv; name=a.csv\r\n\
        Content-Disposition: attachment; filename=\"a.csv\"\r\n\r\na,b\r\n--out\r\nContent-Type: message/rfc822\r\n\r\nSubject: Inner\r\n\r\nInner words.\r\n--out--\r\n";
    let document = open("a.eml", mail);
    let wanted = "# Grüße\n\nFrom: Ada <ada@example.org>\nTo: bob@example.org\nDate: Mon, 2 Nov 2026 10:00:00 +0000\n\nHello Böb,\n\nsee below.\n\n\
        ## Inner\n\nInner words.\n\n| attachment | type | bytes |\n| --- | --- | --- |\n| a.csv | text/csv | 3 |\n";
    assert_eq!(markdown(&document), wanted);
    assert_eq!(document.info.author.as_deref(), Some("Ada <ada@example.org>"));
}

#[test]
fn a_mail_of_html_alone() {
    let mail = "From: a@example.org\nSubject: S\nDate: now\nContent-Type: text/html\n\n<h2>Big</h2><p>Text</p><script>no()</script>";
    assert_eq!(markdown(&open("x", mail)), "# S\n\nFrom: a@example.org\nDate: now\n\n## Big\n\nText\n");
}
