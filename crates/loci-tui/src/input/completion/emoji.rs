//! Emoji by their short names: `:tada:` becomes 🎉, and two letters behind a colon are enough for a menu.

use super::word_start;

/// Fewer letters name too many.
const FEWEST_LETTERS: usize = 2;
/// So many are offered.
const MOST_OFFERED: usize = 50;

/// A name and its picture a line, those that are used most first. As one text it needs no place in memory before it is looked at.
const EMOJI: &str = "\
thumbsup 👍
+1 👍
thumbsdown 👎
-1 👎
tada 🎉
heart ❤️
rocket 🚀
fire 🔥
bug 🐛
sparkles ✨
eyes 👀
white_check_mark ✅
x ❌
warning ⚠️
smile 😄
joy 😂
thinking 🤔
pray 🙏
clap 👏
wave 👋
100 💯
construction 🚧
memo 📝
lock 🔒
zap ⚡
art 🎨
recycle ♻️
wrench 🔧
hammer 🔨
package 📦
bulb 💡
boom 💥
star ⭐
grinning 😀
smiley 😃
grin 😁
laughing 😆
sweat_smile 😅
rofl 🤣
slightly_smiling_face 🙂
upside_down_face 🙃
wink 😉
blush 😊
innocent 😇
heart_eyes 😍
star_struck 🤩
kissing_heart 😘
yum 😋
stuck_out_tongue 😛
zany_face 🤪
hugs 🤗
shushing_face 🤫
zipper_mouth_face 🤐
raised_eyebrow 🤨
neutral_face 😐
expressionless 😑
smirk 😏
unamused 😒
roll_eyes 🙄
grimacing 😬
relieved 😌
pensive 😔
sleepy 😪
sleeping 😴
mask 😷
nauseated_face 🤢
sneezing_face 🤧
hot_face 🥵
cold_face 🥶
dizzy_face 😵
exploding_head 🤯
cowboy_hat_face 🤠
partying_face 🥳
sunglasses 😎
nerd_face 🤓
monocle_face 🧐
confused 😕
worried 😟
open_mouth 😮
astonished 😲
flushed 😳
pleading_face 🥺
fearful 😨
cold_sweat 😰
cry 😢
sob 😭
scream 😱
disappointed 😞
sweat 😓
weary 😩
tired_face 😫
yawning_face 🥱
triumph 😤
rage 😡
angry 😠
skull 💀
poop 💩
clown_face 🤡
ghost 👻
alien 👽
robot 🤖
see_no_evil 🙈
hear_no_evil 🙉
speak_no_evil 🙊
ok_hand 👌
v ✌️
crossed_fingers 🤞
metal 🤘
call_me_hand 🤙
point_left 👈
point_right 👉
point_up ☝️
point_down 👇
raised_hand ✋
vulcan_salute 🖖
raised_hands 🙌
open_hands 👐
handshake 🤝
muscle 💪
fist ✊
facepunch 👊
writing_hand ✍️
shrug 🤷
facepalm 🤦
bow 🙇
brain 🧠
ear 👂
broken_heart 💔
two_hearts 💕
sparkling_heart 💖
heartbeat 💓
blue_heart 💙
green_heart 💚
yellow_heart 💛
purple_heart 💜
black_heart 🖤
white_heart 🤍
orange_heart 🧡
question ❓
exclamation ❗
bangbang ‼️
heavy_check_mark ✔️
heavy_plus_sign ➕
heavy_minus_sign ➖
no_entry ⛔
no_entry_sign 🚫
stop_sign 🛑
octagonal_sign 🛑
rotating_light 🚨
information_source ℹ️
arrow_up ⬆️
arrow_down ⬇️
arrow_left ⬅️
arrow_right ➡️
arrows_counterclockwise 🔄
back 🔙
soon 🔜
new 🆕
cool 🆒
free 🆓
up 🆙
ok 🆗
sos 🆘
red_circle 🔴
yellow_circle 🟡
green_circle 🟢
large_blue_circle 🔵
white_circle ⚪
black_circle ⚫
checkered_flag 🏁
triangular_flag_on_post 🚩
computer 💻
keyboard ⌨️
desktop_computer 🖥️
iphone 📱
floppy_disk 💾
cd 💿
battery 🔋
electric_plug 🔌
mag 🔍
mag_right 🔎
key 🔑
unlock 🔓
link 🔗
paperclip 📎
scissors ✂️
pushpin 📌
round_pushpin 📍
clipboard 📋
calendar 📆
date 📅
chart_with_upwards_trend 📈
chart_with_downwards_trend 📉
bar_chart 📊
file_folder 📁
open_file_folder 📂
page_facing_up 📄
books 📚
book 📖
bookmark 🔖
label 🏷️
newspaper 📰
email 📧
inbox_tray 📥
outbox_tray 📤
mailbox 📫
wastebasket 🗑️
pencil2 ✏️
pen 🖊️
straight_ruler 📏
triangular_ruler 📐
gear ⚙️
nut_and_bolt 🔩
hammer_and_wrench 🛠️
toolbox 🧰
magnet 🧲
test_tube 🧪
dna 🧬
microscope 🔬
telescope 🔭
satellite 🛰️
shield 🛡️
bell 🔔
no_bell 🔕
loudspeaker 📢
mega 📣
speech_balloon 💬
thought_balloon 💭
hourglass ⌛
hourglass_flowing_sand ⏳
stopwatch ⏱️
alarm_clock ⏰
watch ⌚
moneybag 💰
dollar 💵
gem 💎
gift 🎁
balloon 🎈
confetti_ball 🎊
trophy 🏆
medal_sports 🏅
1st_place_medal 🥇
dart 🎯
game_die 🎲
jigsaw 🧩
video_game 🎮
musical_note 🎵
guitar 🎸
camera 📷
movie_camera 🎥
tv 📺
house 🏠
office 🏢
hospital 🏥
school 🏫
car 🚗
bike 🚲
train 🚆
airplane ✈️
ship 🚢
ambulance 🚑
fire_engine 🚒
traffic_light 🚥
anchor ⚓
earth_africa 🌍
earth_americas 🌎
earth_asia 🌏
globe_with_meridians 🌐
sunny ☀️
partly_sunny ⛅
cloud ☁️
umbrella ☔
snowflake ❄️
snowman ⛄
rainbow 🌈
ocean 🌊
droplet 💧
moon 🌔
full_moon 🌕
star2 🌟
dizzy 💫
seedling 🌱
evergreen_tree 🌲
deciduous_tree 🌳
cactus 🌵
four_leaf_clover 🍀
rose 🌹
sunflower 🌻
cherry_blossom 🌸
maple_leaf 🍁
fallen_leaf 🍂
mushroom 🍄
dog 🐶
cat 🐱
mouse 🐭
rabbit 🐰
fox_face 🦊
bear 🐻
panda_face 🐼
koala 🐨
tiger 🐯
lion 🦁
cow 🐮
pig 🐷
frog 🐸
monkey 🐒
chicken 🐔
penguin 🐧
bird 🐦
duck 🦆
owl 🦉
bat 🦇
wolf 🐺
horse 🐴
unicorn 🦄
bee 🐝
butterfly 🦋
snail 🐌
ant 🐜
spider 🕷️
turtle 🐢
snake 🐍
lizard 🦎
octopus 🐙
crab 🦀
shrimp 🦐
fish 🐟
dolphin 🐬
whale 🐳
shark 🦈
elephant 🐘
camel 🐫
giraffe 🦒
sloth 🦥
dragon 🐉
apple 🍎
banana 🍌
lemon 🍋
watermelon 🍉
grapes 🍇
strawberry 🍓
cherries 🍒
peach 🍑
avocado 🥑
tomato 🍅
carrot 🥕
corn 🌽
hot_pepper 🌶️
bread 🍞
cheese 🧀
pizza 🍕
hamburger 🍔
taco 🌮
sushi 🍣
ramen 🍜
cookie 🍪
cake 🍰
birthday 🎂
doughnut 🍩
icecream 🍦
popcorn 🍿
coffee ☕
tea 🍵
beer 🍺
beers 🍻
wine_glass 🍷
champagne 🍾
crown 👑
eyeglasses 👓
tophat 🎩
mortar_board 🎓
bomb 💣
crystal_ball 🔮
magic_wand 🪄
bricks 🧱
ladder 🪜
broom 🧹
bathtub 🛁
zzz 💤
dash 💨
sweat_drops 💦
peace_symbol ☮️
yin_yang ☯️
infinity ♾️
copyright ©️
tm ™️
hash #️⃣
";

fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    EMOJI.lines().filter_map(|line| line.split_once(' '))
}

/// Returns the picture of a name.
pub(super) fn emoji(name: &str) -> Option<&'static str> {
    all().find(|(known, _)| *known == name).map(|(_, picture)| picture)
}

/// Returns names that have the letters, those that begin with them first, each with its picture.
pub fn match_emoji(letters: &str) -> Vec<(&'static str, &'static str)> {
    let letters = letters.to_lowercase();
    let begins = all().filter(|(name, _)| name.starts_with(&letters));
    let contains = all().filter(|(name, _)| !name.starts_with(&letters) && name.contains(&letters));
    begins.chain(contains).take(MOST_OFFERED).collect()
}

/// Returns where the colon of a name stands that the text ends with, and the letters behind it; a colon within a word, as
/// addresses have it, begins none.
pub(super) fn begun_name(before: &str) -> Option<(usize, &str)> {
    let start = word_start(before);
    let letters = before[start..].strip_prefix(':')?;
    let is_name = letters.len() >= FEWEST_LETTERS && letters.chars().all(is_name_letter);
    is_name.then_some((start, letters))
}

/// Returns where a whole name begins that the text ends with, and the picture in whose place it stands.
pub fn whole_name(before: &str) -> Option<(usize, &'static str)> {
    let start = word_start(before);
    let name = before[start..].strip_prefix(':')?.strip_suffix(':')?;
    Some((start, emoji(name)?))
}

fn is_name_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_stands_behind_a_colon_that_begins_a_word() {
        for (before, begun) in [
            (":he", Some((0, "he"))),
            ("so :tad", Some((3, "tad"))),
            ("so\u{3000}:tad", Some((5, "tad"))),
            (":h", None),
            (":", None),
            ("http://he", None),
            ("a:he", None),
            (":he llo", None),
            (":)x", None),
        ] {
            assert_eq!(begun_name(before), begun, "{before}");
        }
        for (before, whole) in [
            (":tada:", Some((0, "🎉"))),
            ("so :+1:", Some((3, "👍"))),
            ("so :nothing_like_it:", None),
            ("::", None),
            ("12:tada:", None),
        ] {
            assert_eq!(whole_name(before), whole, "{before}");
        }
    }

    #[test]
    fn names_that_begin_with_the_letters_come_first_and_each_has_one_picture() {
        let found = match_emoji("hea");
        assert_eq!(found[0], ("heart", "❤️"));
        assert!(found.iter().any(|(name, _)| *name == "broken_heart"));
        assert_eq!(all().count(), EMOJI.lines().count());
        for (at, (name, picture)) in all().enumerate() {
            assert!(name.chars().all(is_name_letter) && !picture.is_empty(), "{name}");
            assert!(!all().take(at).any(|(other, _)| other == name), "{name} is there twice");
        }
    }
}
