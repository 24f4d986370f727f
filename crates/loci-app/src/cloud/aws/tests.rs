//! Keys from every place, with a home of the test's own.

use loci_testkit::TestHome;

use super::*;

struct World {
    home: TestHome,
    env: Env,
}

impl World {
    fn new(vars: &[(&str, &str)]) -> Self {
        let home = TestHome::new();
        let mut env = Env::for_test(home.home(), home.project());
        let usual = [("PATH", "/usr/bin:/bin"), ("AWS_EC2_METADATA_DISABLED", "1")];
        env.vars = usual.into_iter().chain(vars.iter().copied()).collect();
        Self { home, env }
    }

    fn source(&self, export: Option<&str>, refresh: Option<&str>) -> AwsSource {
        AwsSource::new(AwsChain {
            env: self.env.clone(),
            region: "us-east-1".to_owned(),
            export: export.map(str::to_owned),
            refresh: refresh.map(str::to_owned),
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
