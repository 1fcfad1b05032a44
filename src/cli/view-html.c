#include <errno.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/error.h"
#include "cli/canvas-inside.h"
#include "cli/html.h"
#include "cli/sweep-picture.h"
#include "cli/view.h"

static const char style[] =
    "body{margin:0 auto;max-width:1280px;padding:0 16px 48px;background:var(--i0);"
    "color:var(--i5);font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,"
    "'Helvetica Neue',Arial,sans-serif}\n"
    "svg{display:block;width:100%;height:auto}\n"
    "h1{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}\n"
    "section{padding:0 3.75%}\n"
    "h2{font-size:18px;margin:32px 0 8px}\n"
    ".wide{overflow-x:auto}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}\n"
    "th,td{padding:6px 12px;text-align:right;border-bottom:1px solid var(--i2);"
    "white-space:nowrap}\n"
    "th:first-child,td:first-child{text-align:left}\n"
    "th{color:var(--i4);font-weight:600}\n"
    "tr.hot td{background:var(--i1)}\n"
    "details{margin-top:24px}summary{cursor:pointer;font-weight:600}\n"
    "p{max-width:75ch}\n"
    ".stamp{color:var(--i13);font-weight:700;letter-spacing:.04em}\n"
    ".pt{cursor:default}.pt.hot>*{stroke:var(--i5)!important;stroke-width:2.5px}\n"
    "#tip{position:fixed;z-index:2;pointer-events:none;background:var(--i0);"
    "color:var(--i5);border:1px solid var(--i3);border-radius:6px;padding:8px 12px;"
    "font-size:13px;line-height:1.45;box-shadow:0 4px 16px rgb(0 0 0/.18);"
    "font-variant-numeric:tabular-nums;white-space:nowrap}\n";

/* Finds the nearest point under the pointer, shows its figures, and lights it up in
 * every panel and in the tables.
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

static void put_cells(const struct view *v, size_t point, FILE *to)
{
    const struct sweep *s = v->sweep;
    const struct sweep_point *p = &s->point[point], *ref = &s->point[s->ref];
    struct view_unit e = view_energy_unit(v), t = view_time_unit(v);
    double energy = p->energy_j * e.scale, time = p->time_s * t.scale;
    char text[VIEW_TEXT];

    (void)fprintf(to, "<td>%s</td><td>%.1f W</td>", view_watts(p->cap_mw, text),
                  p->power_w);
    (void)fprintf(
        to, "<td>%.*f %s</td><td>%s</td>", view_digits(energy), energy, e.name,
        point == s->ref ? "" : view_change(p->energy_j / ref->energy_j - 1, true, text));
    (void)fprintf(to, "<td>%.*f %s</td><td>%s</td>", view_digits(time), time, t.name,
                  point == s->ref ? ""
                                  : view_change(p->time_s / ref->time_s - 1, true, text));
}

static void put_optima(const struct view *v, FILE *to)
{
    const struct sweep *s = v->sweep;

    (void)fputs("<h2>Best caps</h2>\n<div class=\"wide\"><table>\n<tr><th></th>"
                "<th>cap</th><th>mean power</th><th>energy</th><th>change</th>"
                "<th>time</th><th>change</th></tr>\n",
                to);
    (void)fprintf(to, "<tr data-i=\"%zu\"><td>default limit</td>", s->ref);
    put_cells(v, s->ref, to);
    (void)fputs("</tr>\n", to);
    for (size_t g = 0; g < SWEEP_OPTIMA; g++) {
        (void)fprintf(to, "<tr data-i=\"%zu\"><td>min %s</td>", s->optimum[g].point,
                      view_goal_name(g));
        put_cells(v, s->optimum[g].point, to);
        (void)fputs("</tr>\n", to);
    }
    (void)fputs("</table></div>\n", to);
}

static void put_all(const struct view *v, FILE *to)
{
    const struct sweep *s = v->sweep;

    (void)fprintf(
        to,
        "<details><summary>All %zu caps</summary>\n<div class=\"wide\"><table>\n"
        "<tr><th>Pareto front</th><th>cap</th><th>mean power</th>"
        "<th>energy</th><th>change</th><th>time</th><th>change</th>"
        "<th>EDP</th><th>EDS(2)</th><th>EDS(1.5)</th><th>runs</th></tr>\n",
        s->n);
    for (size_t i = 0; i < s->n; i++) {
        (void)fprintf(to, "<tr data-i=\"%zu\"><td>%s</td>", i,
                      s->point[i].pareto ? "yes" : "no");
        put_cells(v, i, to);
        for (size_t g = 1; g < SWEEP_OPTIMA; g++)
            (void)fprintf(to, "<td>%.4f</td>", sweep_value(s, &s->optimum[g].goal, i));
        (void)fprintf(to, "<td>%u</td></tr>\n", s->point[i].runs);
    }
    (void)fputs("</table></div></details>\n", to);
}

static void put_method(const struct view *v, FILE *to)
{
    char drift[300];

    (void)fputs("<h2>Method</h2>\n<p>", to);
    if (v->simulated)
        (void)fputs("<span class=\"stamp\">SIMULATED.</span> ", to);
    (void)canvas_escape(to, v->method);
    (void)fputs("</p>\n<p>", to);
    view_drift(v, true, drift, sizeof drift);
    (void)canvas_escape(to, drift);
    (void)fputs(
        "</p>\n<p>EDP is energy times time; EDS(k) is (k\u22121)/k \u00b7 E/E<sub>default"
        "</sub> + 1/k \u00b7 T/T<sub>default</sub>. Both are given relative to the "
        "default "
        "limit, and less is better. A cap lies on the Pareto front when no other one "
        "costs "
        "less of both energy and time. Bars show one standard deviation of a run (of EDP "
        "and EDS: the standard error) where caps were measured more than once.</p>\n",
        to);
}

/* The same JSON as --json writes; nothing in it can end the script element. */
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

static int put_picture(const struct view *v, FILE *to, uw_error *err)
{
    auto_(canvas_free) struct canvas *c = NULL;

    int r = canvas_new_svg(to, PICTURE_WIDTH, PICTURE_HEIGHT, "Picture of the sweep",
                           true, &c, err);
    if (r < 0)
        return r;
    picture_draw(c, v);
    return canvas_finish(c, err);
}

int view_html(const struct view *v, FILE *to, uw_error *err)
{
    (void)fputs(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
        "<title>",
        to);
    if (v->simulated)
        (void)fputs("Simulated: ", to);
    (void)canvas_escape(to, v->label);
    (void)fputs(" on ", to);
    (void)canvas_escape(to, v->board);
    (void)fputs(", power cap sweep</title>\n", to);
    html_put_style(style, to);
    (void)fputs("</head>\n<body>\n<h1>Power cap sweep of ", to);
    (void)canvas_escape(to, v->label);
    (void)fputs("</h1>\n<main>\n", to);
    int r = put_picture(v, to, err);
    if (r < 0)
        return r;
    (void)fputs("<section>\n", to);
    put_optima(v, to);
    put_all(v, to);
    put_method(v, to);
    (void)fputs("</section>\n</main>\n<div id=\"tip\" hidden></div>\n", to);
    r = put_json(v, to, err);
    if (r < 0)
        return r;
    (void)fprintf(to, "<script>\n%s</script>\n</body>\n</html>\n", script);
    return ferror(to) ? fail(err, -EIO, "cannot write the page") : 0;
}
