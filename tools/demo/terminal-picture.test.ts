import assert from 'node:assert/strict';
import { test } from 'node:test';
import { terminalLines, terminalPicture } from './terminal-picture.ts';

test('output is shown as a terminal leaves it', () => {
  assert.deepEqual(terminalLines('\x1b[32mready\x1b[0m\r\n10%\r100%\r\n\n\nend \n'), ['ready', '100%', '', 'end']);
});

test('a picture holds its lines as text, cut and escaped', () => {
  const picture = terminalPicture(['$ npm run demo', 'a < b && "c"', 'x'.repeat(200)], 'demo');
  assert.match(picture, /^<svg [^>]*aria-label="demo"/);
  assert.ok(picture.includes('>a &lt; b &amp;&amp; &quot;c&quot;</text>'));
  assert.ok(picture.includes(`>${'x'.repeat(99)}…</text>`));
  assert.doesNotMatch(picture, /<(image|script|style)|href|url\(/);
});
