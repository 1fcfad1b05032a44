#include "cli/top-screen.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/cmd.h"

enum { ESCAPE_MS = 50 }; /* after this time Esc is a key by itself */

static SCREEN *screen;
static bool coloured;
static attr_t look_attr[GRID_LOOKS];
static short look_pair[GRID_LOOKS];

static void set_look(enum grid_look look, attr_t attr, short colour, short ground)
{
    look_attr[look] = attr;
    look_pair[look] = 0;
    if (coloured && (colour >= 0 || ground >= 0) &&
        init_pair((short)look, colour, ground) == OK)
        look_pair[look] = (short)look;
}

/* Without colours, bold, reverse and underline distinguish the looks. */
static void set_looks(bool colour)
{
    coloured = colour && has_colors() && start_color() == OK;
    if (coloured)
        (void)use_default_colors();
    set_look(GRID_PLAIN, A_NORMAL, -1, -1);
    set_look(GRID_DIM, A_DIM, -1, -1);
    set_look(GRID_BOLD, A_BOLD, -1, -1);
    /* Not black on a colour: many palettes show black as a dark grey. */
    set_look(GRID_HEAD, coloured ? A_BOLD : A_REVERSE, COLOR_WHITE, COLOR_BLUE);
    set_look(GRID_PICKED, coloured ? A_BOLD : A_REVERSE, COLOR_WHITE, COLOR_MAGENTA);
    set_look(GRID_GOOD, A_NORMAL, COLOR_GREEN, -1);
    set_look(GRID_NEAR, coloured ? A_NORMAL : A_BOLD, COLOR_YELLOW, -1);
    set_look(GRID_FULL, A_BOLD, COLOR_RED, -1);
    set_look(GRID_MARK, A_BOLD, -1, -1);
    set_look(GRID_WARN, A_BOLD, COLOR_YELLOW, -1);
}

/* As the handler of curses, which ends with 1: ^C is the user's quit, even while an
 * answer is awaited.
 */
static void on_interrupt(int signo)
{
    (void)signo;
    (void)endwin();
    _exit(EXIT_OK);
}

int screen_open(bool colour, uw_error *err)
{
    if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
        return fail(err, -ENOTTY,
                    "standard input and output are not a terminal: use --once");
    (void)sigaction(SIGINT, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
    screen = newterm(NULL, stdout, stdin);
    if (!screen)
        return fail(err, -EINVAL, "TERM names no usable terminal: use --once");
    (void)set_term(screen);
    (void)cbreak();
    (void)noecho();
    (void)curs_set(0);
    (void)keypad(stdscr, true);
    (void)set_escdelay(ESCAPE_MS);
    set_looks(colour);
    return 0;
}

void screen_close(void)
{
    if (!screen)
        return;
    (void)endwin();
    delscreen(screen);
    screen = NULL;
}

void screen_size(unsigned *ret_rows, unsigned *ret_cols, bool *ret_ascii)
{
    int rows = 0, cols = 0;

    getmaxyx(stdscr, rows, cols);
    *ret_rows = rows > 0 ? (unsigned)rows : 1;
    *ret_cols = cols > 0 ? (unsigned)cols : 1;
    *ret_ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
}

void screen_show(const struct grid *g)
{
    for (unsigned row = 0; row < g->rows; row++) {
        for (unsigned col = 0; col < g->cols; col++) {
            const struct grid_cell *c = &g->cell[(size_t)row * g->cols + col];
            wchar_t text[3] = {(wchar_t)c->code, (wchar_t)c->mark, 0};
            cchar_t cell;
            if (c->code &&
                setcchar(&cell, text, look_attr[c->look], look_pair[c->look], NULL) == OK)
                (void)mvadd_wch((int)row, (int)col, &cell);
        }
    }
    (void)refresh();
}

/* The character that begins with this byte: the following bytes arrive at once. */
static void take_text(int first, char ret[SCREEN_TEXT])
{
    size_t need = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1, n = 0;

    ret[n++] = (char)first;
    timeout(ESCAPE_MS);
    while (n < need) {
        int key = getch();
        if (key == ERR)
            break;
        if (key < 0x80 || key >= 0xc0) { /* another key */
            (void)ungetch(key);
            break;
        }
        ret[n++] = (char)key;
    }
    if (utf8_plain_char(ret, n) != n)
        n = 0;
    ret[n] = '\0';
}

bool screen_key(int wait_ms, enum top_key *ret, char ret_text[SCREEN_TEXT])
{
    static const struct {
        int key;
        enum top_key is;
    } keys[] = {
        {'q', TOP_KEY_QUIT},
        {'Q', TOP_KEY_QUIT},
        {KEY_F(10), TOP_KEY_QUIT},
        {'h', TOP_KEY_HELP},
        {'?', TOP_KEY_HELP},
        {KEY_F(1), TOP_KEY_HELP},
        {'c', TOP_KEY_CLAIMS},
        {KEY_F(2), TOP_KEY_CLAIMS},
        {'w', TOP_KEY_WASTE},
        {KEY_F(3), TOP_KEY_WASTE},
        {'s', TOP_KEY_SORT},
        {KEY_F(6), TOP_KEY_SORT},
        {' ', TOP_KEY_FREEZE},
        {KEY_F(9), TOP_KEY_FREEZE},
        {'k', TOP_KEY_UP},
        {KEY_UP, TOP_KEY_UP},
        {'j', TOP_KEY_DOWN},
        {KEY_DOWN, TOP_KEY_DOWN},
        {KEY_PPAGE, TOP_KEY_PAGE_UP},
        {KEY_HOME, TOP_KEY_HOME},
        {KEY_NPAGE, TOP_KEY_PAGE_DOWN},
        {KEY_END, TOP_KEY_END},
        {'/', TOP_KEY_FILTER},
        {'\\', TOP_KEY_FILTER},
        {KEY_F(4), TOP_KEY_FILTER},
        {'\n', TOP_KEY_ENTER},
        {'\r', TOP_KEY_ENTER},
        {KEY_ENTER, TOP_KEY_ENTER},
        {27, TOP_KEY_ESCAPE},
        {127, TOP_KEY_BACKSPACE},
        {'\b', TOP_KEY_BACKSPACE},
        {KEY_BACKSPACE, TOP_KEY_BACKSPACE},
    };

    timeout(wait_ms);
    int key = getch();
    if (key == ERR)
        return false;
    *ret = TOP_KEY_OTHER;
    ret_text[0] = '\0';
    for (size_t i = 0; i < n_elements(keys); i++) {
        if (keys[i].key == key)
            *ret = keys[i].is;
    }
    if (key < KEY_MIN)
        take_text(key, ret_text);
    return true;
}
