//! Keys from every place, with a home of the test's own.

use loci_testkit::{HttpDouble, TestHome, check_aws_signature};

use super::*;

struct World {
    home: TestHome,
    env: Env,
}

/// What people were told.
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl World {
    fn new(vars: &[(&str, &str)]) -> Self {
        let home = TestHome::new();
        let mut env = Env::for_test(home.home(), home.project());
        let usual = [("PATH", "/usr/bin:/bin"), ("AWS_EC2_METADATA_DISABLED", "1")];
        env.vars = usual.into_iter().chain(vars.iter().copied()).collect();
        Self { home, env }
    }

    fn announcer(&self) -> Announcer {
        let announcer = Announcer::default();
        announcer.listen(|text| TOLD.lock().unwrap().push(text.to_owned()));
        announcer
    }

    fn source(&self, export: Option<&str>, refresh: Option<&str>) -> AwsSource {
        AwsSource::new(AwsChain {
            env: self.env.clone(),
            region: "us-east-1".to_owned(),
            service: AwsService::Bedrock,
            export: export.map(str::to_owned),
            refresh: refresh.map(str::to_owned),
            announcer: self.announcer(),
        })
    }
}

async fn show(source: &AwsSource) -> String {
    match source.current().await {
        Ok(Auth::Aws(signer)) => {
            let token = signer.keys.session_token.as_ref().map_or("-", |token| token.expose());
            format!("{} {} {token}", signer.keys.access_key, signer.keys.secret_key.expose())
        }
        Ok(other) => format!("{other:?}"),
        Err(failure) => failure.message,
    }
}

#[tokio::test]
async fn keys_come_from_the_first_place_that_has_them() {
    let world = World::new(&[]);
    assert!(show(&world.source(None, None)).await.contains("No Amazon credentials were found"));
    world.home.write_home(".aws/config", "[default]\ncredential_process = echo '{\"AccessKeyId\":\"P\",\"SecretAccessKey\":\"p\"}'\n[profile role]\nrole_arn = arn:x\n");
    assert_eq!(show(&world.source(None, None)).await, "P p -");
    world
        .home
        .write_home(".aws/credentials", "[default]\naws_access_key_id = C\naws_secret_access_key = c\n");
    assert_eq!(show(&world.source(None, None)).await, "C c -");
    let variables = World {
        env: Env {
            vars: world
                .env
                .vars
                .clone()
                .with("AWS_ACCESS_KEY_ID", "V")
                .with("AWS_SECRET_ACCESS_KEY", "v")
                .with("AWS_SESSION_TOKEN", "t"),
            ..world.env.clone()
        },
        home: TestHome::new(),
    };
    assert_eq!(show(&variables.source(None, None)).await, "V v t");
    let export = r#"echo '{"Credentials":{"AccessKeyId":"E","SecretAccessKey":"e","SessionToken":"x"}}'"#;
    assert_eq!(show(&variables.source(Some(export), None)).await, "E e x");
    let flat = r#"echo '{"AccessKeyId":"E","SecretAccessKey":"e"}'"#;
    assert_eq!(show(&variables.source(Some(flat), None)).await, "E e -");
    assert!(
        show(&variables.source(Some("echo no"), None)).await.contains("`awsCredentialExport` gave no keys")
    );
    let role = World {
        env: Env { vars: world.env.vars.clone().with("AWS_PROFILE", "role"), ..world.env.clone() },
        home: world.home,
    };
    assert!(show(&role.source(None, None)).await.contains("assumes a role"));
}

#[tokio::test]
async fn keys_are_kept_until_shortly_before_their_end() {
    let world = World::new(&[]);
    let counter = |end: &str| {
        format!(
            r#"echo x >> runs; echo "{{\"AccessKeyId\":\"K$(wc -l < runs | tr -d ' ')\",\"SecretAccessKey\":\"s\"{end}}}""#
        )
    };
    let lasting = world.source(Some(&counter(r#",\"Expiration\":\"2026-01-02T04:04:05Z\""#)), None);
    assert_eq!(show(&lasting).await, "K1 s -");
    assert_eq!(show(&lasting).await, "K1 s -");
    let short = world.source(Some(&counter(r#",\"Expiration\":\"2026-01-02T03:06:05Z\""#)), None);
    assert_eq!(show(&short).await, "K2 s -");
    assert_eq!(show(&short).await, "K3 s -");
}

#[tokio::test]
async fn refused_keys_are_renewed_by_the_command() {
    let world = World::new(&[]);
    world
        .home
        .write_home(".aws/credentials", "[default]\naws_access_key_id = OLD\naws_secret_access_key = s\n");
    let file = world.home.home().join(".aws/credentials").display().to_string();
    let refresh = format!("sed -i s/OLD/NEW/ {file}");
    let source = world.source(None, Some(&refresh));
    let auth = source.current().await.unwrap();
    assert_eq!(show(&source).await, "OLD s -");
    assert!(source.refused(&auth));
    assert_eq!(show(&source).await, "NEW s -");
}

#[tokio::test]
async fn command_that_renews_runs_only_where_the_same_keys_are_found_again() {
    let world = World::new(&[]);
    let write = |key: &str| {
        let text = format!("[default]\naws_access_key_id = {key}\naws_secret_access_key = s\n");
        world.home.write_home(".aws/credentials", text);
    };
    write("OLD");
    let mark = world.home.home().join("renewed");
    let source = world.source(None, Some(&format!("touch {}", mark.display())));
    let auth = source.current().await.unwrap();
    write("NEW");
    assert!(source.refused(&auth));
    assert_eq!((show(&source).await.as_str(), mark.exists()), ("NEW s -", false), "somebody renewed them");
    let auth = source.current().await.unwrap();
    assert!(source.refused(&auth));
    assert_eq!((show(&source).await.as_str(), mark.exists()), ("NEW s -", true));
}

/// A login that has ended gives no keys, or old ones: nobody has to be refused first.
#[tokio::test]
async fn login_that_has_ended_is_renewed_before_the_first_request() {
    let keys = |end: &str| format!(r#"{{"AccessKeyId":"K","SecretAccessKey":"s","Expiration":"{end}"}}"#);
    let ended = keys("2026-01-02T03:00:00Z");
    for before in ["not logged in", ended.as_str()] {
        let world = World::new(&[]);
        world.home.write_home(".aws/config", "[default]\ncredential_process = cat \"$HOME/login\"\n");
        world.home.write_home("login", before);
        let fresh = world.home.write_home("fresh", keys("2026-01-02T09:00:00Z"));
        let login = world.home.home().join("login");
        let refresh = format!(
            "cp {} {}; echo x >> {}.log; echo open https://login.example; echo the code is 7 >&2",
            fresh.display(),
            login.display(),
            login.display()
        );
        let env = Env {
            vars: world.env.vars.clone().with("HOME", world.home.home().display().to_string()),
            ..world.env.clone()
        };
        let world = World { env, home: world.home };
        let source = world.source(None, Some(&refresh));
        assert_eq!(show(&source).await, "K s -", "{before}");
        for line in ["awsAuthRefresh: open https://login.example", "awsAuthRefresh: the code is 7"] {
            assert!(TOLD.lock().unwrap().iter().any(|told| told == line), "{line}");
        }
        assert_eq!(show(&source).await, "K s -", "{before}");
        assert_eq!(std::fs::read_to_string(world.home.home().join("login.log")).unwrap(), "x\n", "{before}");
    }
}

#[test]
fn region_comes_from_variables_then_the_profile() {
    let world = World::new(&[]);
    assert_eq!(region(&world.env), "us-east-1");
    world
        .home
        .write_home(".aws/config", "[default]\nregion = eu-west-3\n[profile dev]\nregion = ap-south-1\n");
    assert_eq!(region(&world.env), "eu-west-3");
    let with =
        |name: &str, value: &str| Env { vars: world.env.vars.clone().with(name, value), ..world.env.clone() };
    assert_eq!(region(&with("AWS_PROFILE", "dev")), "ap-south-1");
    assert_eq!(region(&with("AWS_DEFAULT_REGION", "us-west-2")), "us-west-2");
    assert_eq!(region(&with("AWS_REGION", "not a region")), "eu-west-3");
}

/// Keys as the token service lends them.
fn lent(key: &str) -> String {
    format!(
        "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>s/{key}+</SecretAccessKey>\
         <SessionToken>t&amp;{key}</SessionToken><Expiration>2026-01-02T09:04:05Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"
    )
}

#[tokio::test]
async fn roles_are_played_by_the_keys_of_their_source() {
    let service = HttpDouble::start(|request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        match ["outer", "inner", "refused"].iter().find(|name| body.contains(*name)) {
            Some(&"refused") => {
                (403, "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>".to_owned())
            }
            Some(name) => (200, lent(&name.to_uppercase())),
            None => (400, String::new()),
        }
    });
    let world = World::new(&[("AWS_ENDPOINT_URL_STS", &service.base_url())]);
    world.home.write_home(
        ".aws/config",
        "[profile outer]\nrole_arn = arn:aws:iam::1:role/outer\nsource_profile = inner\nrole_session_name = me\nexternal_id = x y\nduration_seconds = 900\n\
         [profile inner]\nrole_arn = arn:aws:iam::1:role/inner\nsource_profile = base\n\
         [profile own]\nrole_arn = arn:aws:iam::1:role/inner\nsource_profile = own\n\
         [profile circle]\nrole_arn = arn:aws:iam::1:role/inner\nsource_profile = circle2\n\
         [profile circle2]\nrole_arn = arn:aws:iam::1:role/inner\nsource_profile = circle\n\
         [profile refused]\nrole_arn = arn:aws:iam::1:role/refused\nsource_profile = base\n\
         [profile mfa]\nrole_arn = arn:x\nsource_profile = base\nmfa_serial = arn:m\n\
         [profile environment]\nrole_arn = arn:aws:iam::1:role/inner\ncredential_source = Environment\n\
         [profile alone]\nrole_arn = arn:x\n",
    );
    world.home.write_home(
        ".aws/credentials",
        "[base]\naws_access_key_id = BASE\naws_secret_access_key = base-secret\n[own]\naws_access_key_id = OWN\naws_secret_access_key = own-secret\n",
    );
    let with = |profile: &str| World {
        env: Env { vars: world.env.vars.clone().with("AWS_PROFILE", profile), ..world.env.clone() },
        home: TestHome::new(),
    };
    assert_eq!(show(&with("outer").source(None, None)).await, "OUTER s/OUTER+ t&OUTER");
    let requests = service.requests();
    assert_eq!(requests.len(), 2, "the inner role first");
    check_aws_signature(&requests[0], "base-secret").unwrap();
    check_aws_signature(&requests[1], "s/INNER+").unwrap();
    assert!(requests[1].header("authorization").unwrap().contains("/us-east-1/sts/aws4_request"));
    assert_eq!(
        service.bodies()[1],
        "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fouter&RoleSessionName=me&ExternalId=x%20y&DurationSeconds=900"
    );
    assert_eq!(show(&with("own").source(None, None)).await, "INNER s/INNER+ t&INNER");
    for (profile, why) in [
        ("circle", "whose source has no keys"),
        ("refused", "was refused: 403 AccessDenied"),
        ("mfa", "asks for a code"),
        ("environment", "whose source has no keys"),
        ("alone", "names no source_profile"),
    ] {
        let said = show(&with(profile).source(None, None)).await;
        assert!(said.contains(why) && said.contains("assumes a role"), "{profile}: {said}");
    }
}

#[tokio::test]
async fn web_identity_is_exchanged_for_keys() {
    let service = HttpDouble::start(|_| (200, lent("WEB")));
    let world = World::new(&[]);
    let token = world.home.write_home("token", "jwt.of.the.cluster\n").display().to_string();
    let vars = [
        ("AWS_ENDPOINT_URL_STS", service.base_url()),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token.clone()),
        ("AWS_ROLE_ARN", "arn:role".to_owned()),
    ];
    let vars = vars.into_iter().fold(world.env.vars.clone(), |vars, (name, value)| vars.with(name, &value));
    let cluster = World { env: Env { vars, ..world.env.clone() }, home: TestHome::new() };
    assert_eq!(show(&cluster.source(None, None)).await, "WEB s/WEB+ t&WEB");
    assert_eq!(
        service.bodies(),
        [
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Arole&RoleSessionName=loci&WebIdentityToken=jwt.of.the.cluster"
        ]
    );
    assert_eq!(service.requests()[0].header("authorization"), None, "the token is the proof");
    // The same from a profile.
    world.home.write_home(
        ".aws/config",
        format!("[default]\nrole_arn = arn:p\nweb_identity_token_file = {token}\n"),
    );
    let env = Env {
        vars: world.env.vars.clone().with("AWS_ENDPOINT_URL_STS", service.base_url()),
        ..world.env.clone()
    };
    let profile = World { env, home: world.home };
    assert_eq!(show(&profile.source(None, None)).await, "WEB s/WEB+ t&WEB");
}

#[tokio::test]
async fn login_of_sso_is_exchanged_for_keys_while_it_is_good() {
    let portal = HttpDouble::start(|_| {
        let keys =
            r#"{"accessKeyId":"SSO","secretAccessKey":"s","sessionToken":"t","expiration":1767330245000}"#;
        (200, format!("{{\"roleCredentials\":{keys}}}"))
    });
    let world = World::new(&[("AWS_ENDPOINT_URL_SSO", &portal.base_url())]);
    world.home.write_home(
        ".aws/config",
        "[default]\nsso_session = corp\nsso_account_id = 123\nsso_role_name = dev\n[sso-session corp]\nsso_region = eu-west-1\nsso_start_url = https://corp.example/start\n\
         [profile old]\nsso_start_url = https://old.example/start\nsso_account_id = 9\nsso_role_name = ops\nsso_region = us-east-1\n",
    );
    let cache = |name: &str, end: &str| {
        let text = format!(r#"{{"accessToken":"login-token","expiresAt":"{end}"}}"#);
        world.home.write_home(format!(".aws/sso/cache/{}.json", loci_http::sha1_hex(name)), &text);
    };
    assert!(show(&world.source(None, None)).await.contains("no login of SSO"));
    cache("corp", "2026-01-02T03:00:00Z");
    assert!(show(&world.source(None, None)).await.contains("no login of SSO"), "it has ended");
    cache("corp", "2026-01-02T09:00:00Z");
    assert_eq!(show(&world.source(None, None)).await, "SSO s t");
    assert_eq!(portal.paths(), ["GET /federation/credentials?role_name=dev&account_id=123"]);
    assert_eq!(portal.requests()[0].header("x-amz-sso_bearer_token"), Some("login-token"));
    cache("https://old.example/start", "2026-01-02T09:00:00Z");
    let env = Env { vars: world.env.vars.clone().with("AWS_PROFILE", "old"), ..world.env.clone() };
    let old = World { env, home: world.home };
    assert_eq!(show(&old.source(None, None)).await, "SSO s t");
    assert!(portal.paths()[1].contains("role_name=ops&account_id=9"));
}

#[tokio::test]
async fn login_of_the_console_is_asked_of_its_own_program() {
    let world = World::new(&[]);
    let script = r#"#!/bin/sh
echo "{\"AccessKeyId\":\"$4\",\"SecretAccessKey\":\"$2\",\"SessionToken\":\"t\",\"Expiration\":\"2026-01-02T09:00:00Z\"}"
"#;
    let program = world.home.write_home("bin/aws", script);
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world.home.write_home(".aws/config", "[profile my console]\nlogin_session = arn:aws:iam::1:user/me\n");
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let vars = world.env.vars.clone().with("PATH", path).with("AWS_PROFILE", "my console");
    let console = World { env: Env { vars, ..world.env.clone() }, home: world.home };
    assert_eq!(show(&console.source(None, None)).await, "my console export-credentials t");
}

#[tokio::test]
async fn instances_and_containers_lend_the_keys_of_their_role() {
    let metadata = HttpDouble::start(|request| match (request.method.as_str(), request.path.as_str()) {
        ("PUT", "/latest/api/token") => (200, "imds-token".to_owned()),
        _ if request.header("x-aws-ec2-metadata-token") != Some("imds-token") => (401, String::new()),
        ("GET", "/latest/meta-data/iam/security-credentials/") => (200, "the-role\n".to_owned()),
        ("GET", "/latest/meta-data/iam/security-credentials/the-role") => (
            200,
            r#"{"AccessKeyId":"EC2","SecretAccessKey":"s","Token":"t","Expiration":"2026-01-02T09:04:05Z"}"#
                .to_owned(),
        ),
        _ => (404, String::new()),
    });
    let world = World::new(&[
        ("AWS_EC2_METADATA_DISABLED", "false"),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", &metadata.base_url()),
    ]);
    assert_eq!(show(&world.source(None, None)).await, "EC2 s t");
    assert_eq!(metadata.paths()[0], "PUT /latest/api/token");
    // A role that an instance may play.
    let service = HttpDouble::start(|_| (200, lent("ROLE")));
    world
        .home
        .write_home(".aws/config", "[default]\nrole_arn = arn:r\ncredential_source = Ec2InstanceMetadata\n");
    let env = Env {
        vars: world.env.vars.clone().with("AWS_ENDPOINT_URL_STS", service.base_url()),
        ..world.env.clone()
    };
    let played = World { env, home: world.home };
    assert_eq!(show(&played.source(None, None)).await, "ROLE s/ROLE+ t&ROLE");
    check_aws_signature(&service.requests()[0], "s").unwrap();
    let container = HttpDouble::start(|request| match request.header("authorization") {
        Some("container-token") => {
            (200, r#"{"AccessKeyId":"ECS","SecretAccessKey":"s","Token":"t"}"#.to_owned())
        }
        _ => (403, String::new()),
    });
    let world = World::new(&[
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &format!("{}/keys", container.base_url())),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "container-token"),
    ]);
    assert_eq!(show(&world.source(None, None)).await, "ECS s t");
}

#[tokio::test]
async fn keys_are_looked_for_anew_and_as_long_as_variables_say() {
    let world = World::new(&[("CLAUDE_CODE_SKIP_AWS_CRED_CACHE", "1")]);
    let counter = r#"echo x >> runs; echo "{\"AccessKeyId\":\"K$(wc -l < runs | tr -d ' ')\",\"SecretAccessKey\":\"s\"}""#;
    let source = world.source(Some(counter), None);
    assert_eq!((show(&source).await, show(&source).await), ("K1 s -".to_owned(), "K2 s -".to_owned()));
    for (said, expected) in [("120000", 120), ("0", 60), ("long", 60), ("", 60)] {
        let world = World::new(&[("CLAUDE_CODE_AWS_CHAIN_RESOLVE_TIMEOUT_MS", said)]);
        assert_eq!(world.source(None, None).limit(), Duration::from_secs(expected), "{said}");
    }
}
