import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHistogram } from './histogram.ts';
import { familyText } from './metric-family.ts';

test('familyText() writes numbers with their labels, escaped', () => {
  const text = familyText({
    name: 'seen_total',
    help: 'Things seen.',
    type: 'counter',
    samples: [
      { labels: {}, value: 1 },
      { labels: { what: 'a "b"\\\n', who: 'c' }, value: 2.5 },
    ],
  });
  assert.equal(
    text,
    '# HELP seen_total Things seen.\n# TYPE seen_total counter\nseen_total 1\nseen_total{what="a \\"b\\"\\\\\\n",who="c"} 2.5\n',
  );
});

test('a histogram adds up its buckets; a bound belongs to its bucket', () => {
  const histogram = createHistogram({ name: 'took', help: 'Time.', bounds: [0.1, 0.5, 1], maxSeries: 1 });
  for (const seconds of [0.1, 0.25, 0.5, 0.75, 2]) histogram.observe({ who: 'a' }, seconds);
  histogram.observe({ who: 'one too many' }, 1);
  assert.deepEqual(familyText(histogram.family()).split('\n'), [
    '# HELP took Time.',
    '# TYPE took histogram',
    'took_bucket{who="a",le="0.1"} 1',
    'took_bucket{who="a",le="0.5"} 3',
    'took_bucket{who="a",le="1"} 4',
    'took_bucket{who="a",le="+Inf"} 5',
    'took_sum{who="a"} 3.6',
    'took_count{who="a"} 5',
    '',
  ]);
});
