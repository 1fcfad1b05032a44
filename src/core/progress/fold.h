/* Folds a series at a period, and measures how much of its variance repeats.  Pure
 * arithmetic under period.h.
 */
#ifndef CORE_PROGRESS_FOLD_H
#define CORE_PROGRESS_FOLD_H

#include <stddef.h>
#include <stdint.h>

enum { FOLD_MOST = 512, FOLD_KNOTS_LEAST = 3, FOLD_KNOTS = 48, FOLD_PARTS = 8 };

/* One signal over a span, mean near 0. */
struct series {
    size_t n;
    uint64_t t[FOLD_MOST]; /* ns since the span's begin, rising */
    float x[FOLD_MOST];
};

double series_total(const struct series *s); /* sum of squares around the mean */
/* out = s minus its running mean over width_s (at the ends: over the first or last
 * width_s).
 */
void series_detrend(const struct series *s, double width_s, struct series *out);

/* Coarse and fast, for scans: the unexplained share of the variance, corrected for
 * degrees of freedom; total is series_total().  About 1 for noise, towards 0 for a
 * pattern.
 */
double fold_scan(const struct series *s, double hz, unsigned bins, double total);

/* A piecewise linear profile, fitted by least squares. */
struct fold {
    double hz;
    unsigned knots;
    double w[FOLD_KNOTS]; /* at phase k / knots */
    double within, total; /* sums of squares around the profile and the mean */
    double run;           /* correlation length of the residual, in samples */
    double freedom;       /* degrees of freedom of the profile */
    double rest;
    double surprise; /* -log10 of the probability that noise fits as well */
};
void fold_fit(const struct series *s, double hz, unsigned knots, struct fold *ret);
/* fold_fit(), then sets run, freedom, rest and surprise; samples: in a cycle. */
void fold_judge(const struct series *s, double hz, unsigned knots, double samples,
                struct fold *ret);
double fold_at(const struct fold *f, uint64_t t_ns);
/* 1 for noise, towards 0 for a pattern. */
double fold_unexplained(const struct fold *f);

/* A span in parts of equal length, each compared with the profile of the whole. */
struct fold_parts {
    unsigned n;
    double at_s[FOLD_PARTS];   /* their middles */
    double amp[FOLD_PARTS];    /* 1: shows the whole pattern */
    double amp_se[FOLD_PARTS]; /* standard error, from noise alone */
    double turn[FOLD_PARTS];   /* phase against the profile; late is positive */
    double turn_se[FOLD_PARTS];
    uint64_t from_ns[FOLD_PARTS + 1];
};
void fold_parts(const struct series *s, const struct fold *f, unsigned parts,
                struct fold_parts *ret);

/* -log10 P(F(d1, d2) > f), Paulson's approximation. */
double fold_surprise(double f, double d1, double d2);

#endif
