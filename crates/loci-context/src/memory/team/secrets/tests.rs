use super::*;

/// Digits and letters in no order, always the same; built here, so that no scanner trips over this repository.
fn noise(alphabet: &str, n: usize) -> String {
    let alphabet: Vec<char> = alphabet.chars().collect();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        alphabet[(state >> 33) as usize % alphabet.len()]
    };
    (0..n).map(|_| next()).collect()
}

const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const MIXED: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// One planted secret of every kind: a rule, what stands before the secret, its alphabet and length, what follows.
fn planted() -> Vec<(&'static str, String)> {
    let plant = |before: &[&str], alphabet: &str, n: usize, after: &str| {
        format!("{}{}{after}", before.concat(), noise(alphabet, n))
    };
    vec![
        ("aws-access-key", plant(&["AK", "IA"], UPPER, 16, "")),
        ("aws-secret-key", plant(&["aws_secret_", "access_key = \""], MIXED, 40, "\"")),
        ("gcp-api-key", plant(&["key=AI", "za"], MIXED, 35, "&x")),
        ("gcp-oauth-secret", plant(&["GOC", "SPX-"], MIXED, 28, "")),
        ("azure-storage-key", plant(&["Account", "Key="], MIXED, 86, "==;")),
        ("azure-client-secret", plant(&["abc8", "Q~"], MIXED, 34, "")),
        ("digitalocean-token", plant(&["dop", "_v1_"], HEX, 64, "")),
        ("heroku-key", plant(&["HR", "KU-"], MIXED, 36, "")),
        ("alibaba-access-key", plant(&["LT", "AI"], MIXED, 20, "")),
        ("github-token", plant(&["gh", "p_"], MIXED, 36, "")),
        ("github-fine-grained-token", plant(&["github", "_pat_"], MIXED, 82, "")),
        ("gitlab-token", plant(&["gl", "pat-"], MIXED, 20, "")),
        ("npm-token", plant(&["//registry/:_authToken=npm", "_"], MIXED, 36, "")),
        ("pypi-token", plant(&["pypi", "-AgE"], MIXED, 80, "")),
        ("crates-io-token", plant(&["ci", "o"], MIXED, 32, "")),
        ("rubygems-token", plant(&["ruby", "gems_"], HEX, 48, "")),
        ("docker-token", plant(&["dckr", "_pat_"], MIXED, 27, "")),
        ("terraform-token", plant(&["abcdefghijklmn.atlas", "v1."], MIXED, 64, "")),
        ("vault-token", plant(&["hv", "s."], MIXED, 24, "")),
        ("databricks-token", plant(&["da", "pi"], HEX, 32, "")),
        ("pulumi-token", plant(&["pu", "l-"], HEX, 40, "")),
        ("anthropic-key", plant(&["sk-", "ant-api03-"], MIXED, 80, "")),
        ("openai-key", plant(&["sk-", "proj-"], MIXED, 60, "")),
        ("hugging-face-token", plant(&["h", "f_"], LETTERS, 34, "")),
        ("slack-token", plant(&["xo", "xb-"], MIXED, 40, "")),
        ("slack-webhook", plant(&["https://hooks.", "slack.com/services/"], MIXED, 44, "")),
        (
            "discord-webhook",
            plant(&["https://discord.com/api/", "webhooks/123456789012345678/"], MIXED, 68, ""),
        ),
        ("discord-token", plant(&["discord: M", "abcdefghijklmnopqrstuvw.abcdef."], MIXED, 27, "")),
        ("telegram-token", plant(&["12345678", ":AA"], MIXED, 33, "")),
        ("twilio-key", plant(&["S", "K"], HEX, 32, "")),
        ("sendgrid-key", plant(&["S", "G.abcdefghijklmnopqrstuv."], MIXED, 43, "")),
        ("mailgun-key", plant(&["ke", "y-"], HEX, 32, "")),
        ("stripe-key", plant(&["sk_", "live_"], MIXED, 24, "")),
        ("shopify-token", plant(&["shp", "at_"], HEX, 32, "")),
        ("square-token", plant(&["sq0", "atp-"], MIXED, 22, "")),
        ("linear-key", plant(&["lin_", "api_"], MIXED, 40, "")),
        ("notion-token", plant(&["nt", "n_"], MIXED, 46, "")),
        ("new-relic-key", plant(&["NR", "AK-"], UPPER, 27, "")),
        ("grafana-token", plant(&["gl", "sa_"], MIXED, 32, "_0123abcd")),
        ("sentry-token", plant(&["sn", "trys_"], MIXED, 60, "")),
        ("atlassian-token", plant(&["ATA", "TT3"], MIXED, 60, "")),
        ("loci-team-token", plant(&["loci", "tm_"], HEX, 64, "")),
        ("private-key", ["-----BEGIN RSA PRIV", "ATE KEY-----"].concat()),
        ("age-key", plant(&["AGE-SECRET", "-KEY-1"], UPPER, 58, "")),
        ("putty-key", ["PuTTY-User-Key", "-File-3: ssh-ed25519"].concat()),
        (
            "json-web-token",
            plant(&["ey", "JhbGciOiJIUzI1NiJ9.ey", "JzdWIiOiIxMjM0NTY3ODkwIn0."], MIXED, 43, ""),
        ),
        ("password-in-address", ["postgres://app:", "hunter2", "@db.internal/app"].concat()),
        ("authorization-header", plant(&["curl -H 'Authoriz", "ation: Bearer "], MIXED, 30, "'")),
        ("assigned-secret", plant(&["pass", "word = \""], MIXED, 20, "\"")),
        ("aws-bedrock-key", plant(&["AB", "SK"], MIXED, 120, "=")),
        ("gcp-oauth-token", plant(&["ya", "29."], MIXED, 80, "")),
        ("gcp-oauth-token", plant(&["1/", "/0"], MIXED, 60, "")),
        ("azure-shared-access-key", plant(&["Endpoint=sb://x/;Shared", "AccessKey="], MIXED, 43, "=")),
        ("azure-signature", plant(&["https://x.blob.core/a?sv=2024&s", "ig="], MIXED, 43, "%3D")),
        ("azure-annotated-key", noise(MIXED, 52) + &plant(&["JQQ", "J99"], MIXED, 26, "")),
        ("cloudflare-token", plant(&["cfu", "t_"], MIXED, 48, "")),
        ("fly-token", plant(&["fm", "2_"], MIXED, 80, "")),
        ("netlify-token", plant(&["nf", "p_"], MIXED, 36, "")),
        ("vercel-token", plant(&["vc", "p_"], MIXED, 56, "")),
        ("render-key", plant(&["rn", "d_"], MIXED, 32, "")),
        ("supabase-key", plant(&["sb", "p_"], HEX, 40, "")),
        ("supabase-key", plant(&["sb_", "secret_"], MIXED, 31, "")),
        ("planetscale-token", plant(&["pscale", "_tkn_"], MIXED, 43, "")),
        ("neon-key", plant(&["np", "g_"], MIXED, 12, "")),
        ("mongodb-atlas-secret", plant(&["mdb_", "sa_sk_"], MIXED, 40, "")),
        ("gitlab-token", plant(&["GR13", "48941"], MIXED, 20, "")),
        ("atlassian-token", plant(&["AT", "BB"], MIXED, 32, "")),
        ("npm-auth", plant(&["//registry.example.org/:_au", "th="], MIXED, 40, "=")),
        ("nuget-key", plant(&["oy", "2"], "abcdefghijklmnopqrstuvwxyz0123456789", 43, "")),
        ("jfrog-token", plant(&["AK", "Cp"], MIXED, 69, "")),
        ("docker-config", plant(&["{\"au", "th\": \""], MIXED, 32, "==\"}")),
        ("circleci-token", plant(&["CCIP", "AT_"], MIXED, 22, "_") + &noise(HEX, 40)),
        ("buildkite-token", plant(&["bk", "ua_"], HEX, 40, "")),
        ("sonar-token", plant(&["sq", "p_"], HEX, 40, "")),
        ("doppler-token", plant(&["dp.", "st.prod."], MIXED, 43, "")),
        ("1password-key", plant(&["ops", "_eyJ"], MIXED, 260, "")),
        ("tailscale-key", plant(&["tskey", "-auth-kFGiAS2CNTRL-"], MIXED, 32, "")),
        ("openai-like-key", plant(&["sk-", "or-v1-"], HEX, 64, "")),
        ("openai-like-key", plant(&["sk", "-"], HEX, 32, "")),
        ("groq-key", plant(&["gs", "k_"], MIXED, 52, "")),
        ("xai-key", plant(&["xa", "i-"], MIXED, 80, "")),
        ("perplexity-key", plant(&["ppl", "x-"], MIXED, 48, "")),
        ("replicate-token", plant(&["r", "8_"], MIXED, 37, "")),
        ("nvidia-key", plant(&["nva", "pi-"], MIXED, 64, "")),
        ("pinecone-key", plant(&["pc", "sk_"], MIXED, 60, "")),
        ("langsmith-key", plant(&["ls", "v2_pt_"], HEX, 32, "_") + &noise(HEX, 10)),
        ("tavily-key", plant(&["tv", "ly-dev-"], MIXED, 32, "")),
        ("slack-token", plant(&["xo", "xc-"], MIXED, 40, "")),
        ("teams-webhook", plant(&["https://x.webhook.", "office.com/webhookb2/"], MIXED, 80, "")),
        ("mailchimp-key", plant(&[""], HEX, 32, "-us21")),
        ("brevo-key", plant(&["xkey", "sib-"], HEX, 64, "-") + &noise(MIXED, 16)),
        ("resend-key", plant(&["re", "_"], MIXED, 8, "_") + &noise(MIXED, 24)),
        ("square-token", plant(&["EA", "AA"], MIXED, 60, "")),
        ("braintree-token", plant(&["access_", "token$production$"], HEX, 16, "$") + &noise(HEX, 32)),
        ("plaid-token", ["access-", "production-", "8f14e45f-ceea-467e-9b4c-0d1f6a3e2b7c"].concat()),
        ("flutterwave-key", plant(&["FLW", "SECK-"], HEX, 32, "-X")),
        ("mollie-key", plant(&["li", "ve_"], MIXED, 30, "")),
        ("meta-token", plant(&["EA", "A"], MIXED, 120, "")),
        ("mapbox-token", plant(&["sk.", "eyJ"], MIXED, 60, ".") + &noise(MIXED, 22)),
        ("dynatrace-token", plant(&["dt0", "c01."], UPPER, 24, ".") + &noise(UPPER, 64)),
        ("posthog-key", plant(&["ph", "x_"], MIXED, 43, "")),
        ("postman-key", plant(&["PM", "AK-"], HEX, 24, "-") + &noise(HEX, 34)),
        ("figma-token", plant(&["fi", "gd_"], MIXED, 40, "")),
        ("airtable-token", plant(&["pa", "t"], MIXED, 14, ".") + &noise(HEX, 64)),
        ("dropbox-token", plant(&["s", "l."], MIXED, 136, "")),
        ("private-key", ["---- BEGIN SSH2 ENCRYPTED PRIV", "ATE KEY ----"].concat()),
        ("packed-private-key", ["LS0tLS1CRUdJTi", "BQUklWQVRFIEtFWS0tLS0t"].concat()),
        ("json-web-key", plant(&["{\"kty\":\"EC\",\"d", "\":\""], MIXED, 43, "\"}")),
        ("assigned-private-key", plant(&["Private", "Key = "], MIXED, 43, "=")),
        ("nostr-key", plant(&["ns", "ec1"], "abcdefghijklmnopqrstuvwxyz0123456789", 58, "")),
        ("password-in-address", ["redis://:", "hunter2", "@cache:6379"].concat()),
        ("password-in-query", ["jdbc:mysql://db/app?user=app&pass", "word=hunter2"].concat()),
        ("password-in-connection", ["Server=db;Database=app;User Id=sa;Pass", "word=Hunter2!;"].concat()),
        (
            "password-in-connection",
            ["host=db port=5432 user=app pass", "word=hunter2 sslmode=require"].concat(),
        ),
        ("password-in-netrc", ["machine db.internal login app pass", "word hunter2"].concat()),
        ("password-of-curl", ["curl -s -u admin:", "hunter2! https://db.internal/_cat"].concat()),
    ]
}

/// Invariant 3 of `docs/design/team-memory.md`.
#[test]
fn a_planted_secret_of_every_kind_is_found() {
    let planted = planted();
    for (rule, text) in &planted {
        for around in [text.clone(), format!("Use {text} for now."), format!("- `{text}`")] {
            let found = find_secrets(&format!("first line\n{around}\n"));
            assert!(found.contains(&SecretFound { rule, line: 2 }), "{rule}: {found:?}");
        }
    }
    let tested: Vec<&str> = planted.iter().map(|(rule, _)| *rule).collect();
    let untested: Vec<&str> = RULES.iter().map(|rule| rule.id).filter(|id| !tested.contains(id)).collect();
    assert!(untested.is_empty(), "rules without a planted secret: {untested:?}");
}

/// A rule that cannot be compiled would stop everything with its words in it.
#[test]
fn every_rule_is_whole() {
    for rule in RULES.iter() {
        assert!(Regex::new(rule.pattern).is_ok_and(|it| it.captures_len() == 2), "{}", rule.id);
        assert!(rule.words.iter().all(|it| !it.is_empty() && *it == it.to_ascii_lowercase()), "{}", rule.id);
    }
    let broken = Rule::parse("x\t-\tword\t(");
    assert!(broken.is_met("a word", "a word") && !broken.is_met("none", "none"));
}

/// Invariant 3 of `docs/design/team-memory.md`.
#[test]
fn secret_found_never_holds_the_secret() {
    for (rule, text) in planted() {
        let said = format!("{:?}", find_secrets(&text));
        assert!(!said.contains(&text), "{rule}");
    }
}

/// Invariant 3 of `docs/design/team-memory.md`.
#[test]
fn clean_code_and_prose_raise_no_alarm() {
    let clean = include_str!("clean.txt");
    let alarms: Vec<String> = find_secrets(clean)
        .into_iter()
        .map(|it| format!("{}: {}", it.rule, clean.lines().nth(it.line - 1).unwrap_or_default()))
        .collect();
    assert!(alarms.is_empty(), "{alarms:#?}");
    let ours = [
        include_str!("../secrets.rs"),
        include_str!("../name.rs"),
        include_str!("../../../tokens.rs"),
        include_str!("../../../lib.rs"),
        include_str!("../../../../../../Cargo.lock"),
        include_str!("../../../../../../README.md"),
        include_str!("../../../../../../docs/design/memory.md"),
    ];
    for text in ours {
        assert_eq!(find_secrets(text), [], "{}", text.lines().next().unwrap_or_default());
    }
}
