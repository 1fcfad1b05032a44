#include <errno.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/error.h"
#include "cli/html.h"
#include "cli/sweep-picture.h"
#include "cli/view.h"

static const char style[] =
    "body{max-width:1280px}\n"
    "h1{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}\n"
    "section{padding:0 3.75%}\n"
    /* on a phone the picture scrolls: scaled to the page it is unreadable */
    "@media(max-width:960px){.picture{overflow-x:auto}.picture svg{width:960px}}\n"
    "tr.hot td{background:var(--i1)}\n"
    "details{margin-top:24px}summary{cursor:pointer;font-weight:600}\n"
    ".pt{cursor:default}.pt.hot>*{stroke:var(--i5)!important;stroke-width:2.5px}\n"
    "#tip{position:fixed;z-index:2;pointer-events:none;background:var(--i0);"
    "color:var(--i5);border:1px solid var(--i3);border-radius:6px;padding:8px 12px;"
    "font-size:13px;line-height:1.45;box-shadow:0 4px 16px rgb(0 0 0/.18);"
    "font-variant-numeric:tabular-nums;white-space:nowrap}\n";

/* Finds the point nearest to the pointer, shows its figures, and highlights it in every
 * panel and table.
 */
static const char script[] =
    "(()=>{'use strict';\n"
    "const d=JSON.parse(document.getElementById('sweep').textContent),ref=d.reference;\n"
    "const svg=document.querySelector('svg'),tip=document.getElementById('tip');\n"
    "const pts=[...document.querySelectorAll('[data-i]')];let hot=null;\n"
    "const pc=x=>(x>=0?'+':'\\u2212')+Math.abs(x*100).toFixed(1)+' %';\n"
    "const num=(x,n)=>x.toLocaleString('en',{maximumSignificantDigits:n});\n"
    "const light=i=>{if(i===hot)return;hot=i;"
    "for(const e of pts)e.classList.toggle('hot',e.dataset.i===i)};\n"
    "const hide=()=>{light(null);tip.hidden=true};\n"
    "svg.addEventListener('pointermove',ev=>{let best=null,least=22;\n"
    "for(const e of pts){if(!svg.contains(e))continue;const "
    "r=e.getBoundingClientRect();\n"
    "const dist=Math.hypot(Math.max(r.left-ev.clientX,0,ev.clientX-r.right),"
    "Math.max(r.top-ev.clientY,0,ev.clientY-r.bottom));\n"
    "if(dist<least){least=dist;best=e}}\n"
    "if(!best)return hide();const i=best.dataset.i,p=d.points[i];light(i);\n"
    "tip.replaceChildren();const add=t=>{const e=document.createElement('div');"
    "e.textContent=t;tip.append(e);return e};\n"
    "add(num(p.cap_mw/1000,6)+' W'+(p.cap_mw===ref.cap_mw?' (default limit)':''))"
    ".style.fontWeight='700';\n"
    "add('energy '+num(p.energy_j,5)+' J, '+pc(p.energy_j/ref.energy_j-1));\n"
    "add('time '+num(p.time_s,5)+' s, '+pc(p.time_s/ref.time_s-1));\n"
    "add('mean power '+num(p.power_w,4)+' W');\n"
    "add(p.runs+(p.runs===1?' run':' runs')+(d.simulated?', simulated':''));\n"
    "tip.hidden=false;const w=tip.offsetWidth,h=tip.offsetHeight;\n"
    "tip.style.left=Math.min(ev.clientX+16,innerWidth-w-8)+'px';\n"
    "tip.style.top=Math.min(ev.clientY+16,innerHeight-h-8)+'px'});\n"
    "svg.addEventListener('pointerleave',hide);\n"
    "for(const r of document.querySelectorAll('tr[data-i]')){"
    "r.addEventListener('pointerenter',()=>light(r.dataset.i));"
    "r.addEventListener('pointerleave',()=>light(null))}\n"
    "})();\n";

#define COLUMNS "|cap|mean power|energy|change|time|change"

/* Writes a row of COLUMNS without its end tag. */
static void put_cells(const struct view *v, size_t point, const char *first, FILE *to)
{
    const struct sweep *s = v->sweep;
    const struct sweep_point *p = &s->point[point], *ref = &s->point[s->ref];
    struct view_unit e = view_energy_unit(v), t = view_time_unit(v);
    double energy = p->energy_j * e.scale, time = p->time_s * t.scale;
    bool is_ref = point == s->ref;
    char text[VIEW_TEXT];

    (void)fprintf(to, "<tr data-i=\"%zu\">", point);
    html_put(to, "td", "%s", first);
    html_put(to, "td", "%s", view_watts(p->cap_mw, text));
    html_put(to, "td", "%.1f W", p->power_w);
    html_put(to, "td", "%.*f %s", view_digits(energy), energy, e.name);
    html_put(to, "td", "%s",
             is_ref ? "" : view_change(p->energy_j / ref->energy_j - 1, true, text));
    html_put(to, "td", "%.*f %s", view_digits(time), time, t.name);
    html_put(to, "td", "%s",
             is_ref ? "" : view_change(p->time_s / ref->time_s - 1, true, text));
}

static void put_optima(const struct view *v, FILE *to)
{
    char name[VIEW_TEXT];

    html_put(to, "h2", "Best caps");
    html_table(to, COLUMNS);
    put_cells(v, v->sweep->ref, "default limit", to);
    for (size_t g = 0; g < SWEEP_OPTIMA; g++) {
        (void)fputs("</tr>\n", to);
        put_cells(v, v->sweep->optimum[g].point, view_goal_title(v, g, name), to);
    }
    (void)fputs("</tr>\n", to);
    html_table_end(to);
    html_put(to, "h2", "What more time buys");
    html_table(to, COLUMNS);
    for (size_t i = 0; i < SWEEP_BUYS; i++) {
        (void)snprintf(name, sizeof name, "at most %.0f %% more time",
                       100 * v->sweep->buy[i].time);
        put_cells(v, v->sweep->buy[i].point, name, to);
        (void)fputs("</tr>\n", to);
    }
    html_table_end(to);
}

static void put_all(const struct view *v, FILE *to)
{
    const struct sweep *s = v->sweep;

    (void)fputs("<details>", to);
    html_put(to, "summary", "All %zu caps", s->n);
    html_table(to, "Pareto front" COLUMNS "|EDP|EDS(2)|EDS(1.5)|runs");
    for (size_t i = 0; i < s->n; i++) {
        put_cells(v, i, s->point[i].pareto ? "yes" : "no", to);
        for (size_t g = 1; g < SWEEP_METRICS; g++)
            html_put(to, "td", "%.4f", sweep_value(s, &s->optimum[g].goal, i));
        html_put(to, "td", "%u", s->point[i].runs);
        (void)fputs("</tr>\n", to);
    }
    html_table_end(to);
    (void)fputs("</details>\n", to);
}

static void put_method(const struct view *v, FILE *to)
{
    char drift[300];

    html_method(to, v->simulated);
    canvas_escape(to, v->method);
    (void)fputs("</p>\n<p>", to);
    view_drift(v, true, drift, sizeof drift);
    canvas_escape(to, drift);
    (void)fputs(
        "</p>\n<p>EDP is energy times time; EDS(k) is (k\u22121)/k \u00b7 E/E<sub>default"
        "</sub> + 1/k \u00b7 T/T<sub>default</sub>. Both are given relative to the "
        "default "
        "limit, and less is better. A cap lies on the Pareto front when no other one "
        "costs "
        "less of both energy and time. Bars show the 95 % interval of the mean where "
        "caps "
        "were measured more than once.</p>\n",
        to);
}

/* Embeds the JSON of --json; nothing in it can end the script element. */
static int put_json(const struct view *v, FILE *to, uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    size_t len = 0;

    FILE *mem = open_memstream(&text, &len);
    if (!mem)
        return fail(err, -ENOMEM, "out of memory");
    int r = view_json(v, mem, err);
    if (fclose(mem) != 0 && r >= 0)
        r = fail(err, -ENOMEM, "out of memory");
    if (r < 0)
        return r;
    (void)fputs("<script type=\"application/json\" id=\"sweep\">", to);
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '<')
            (void)fputs("\\u003c", to);
        else
            (void)fputc(text[i], to);
    }
    (void)fputs("</script>\n", to);
    return 0;
}

int view_html(const struct view *v, FILE *to, uw_error *err)
{
    char title[300];

    (void)snprintf(title, sizeof title, "%.200s on %.40s, power cap sweep", v->label,
                   v->board);
    html_begin(to, v->simulated, title, style);
    html_put(to, "h1", "Power cap sweep of %s", v->label);
    (void)fputs("\n<main>\n<div class=\"picture\" tabindex=\"0\">\n", to);
    int r = picture_write(v, CANVAS_INLINE, to, err);
    if (r < 0)
        return r;
    (void)fputs("</div>\n<section>\n", to);
    put_optima(v, to);
    put_all(v, to);
    put_method(v, to);
    (void)fputs("</section>\n</main>\n<div id=\"tip\" hidden></div>\n", to);
    r = put_json(v, to, err);
    if (r < 0)
        return r;
    (void)fprintf(to, "<script>\n%s</script>\n", script);
    return html_end(to, err);
}
