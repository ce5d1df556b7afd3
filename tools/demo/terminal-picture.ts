/** What a terminal showed, as a picture: SVG with text alone, in whatever monospaced font the reader has. */

const COLUMNS = 100;
const COLUMN_PX = 7.8;
const LINE_PX = 17;
const MARGIN_PX = 16;
const BAR_PX = 28;

/** Markup of `lines`, each cut at 100 columns; the first is what was typed. */
export function terminalPicture(lines: readonly string[], title: string): string {
  const width = Math.ceil(COLUMNS * COLUMN_PX + 2 * MARGIN_PX);
  const height = BAR_PX + lines.length * LINE_PX + 2 * MARGIN_PX;
  const rows = lines.map((line, at) => {
    const y = BAR_PX + MARGIN_PX + (at + 0.75) * LINE_PX;
    const fill = at === 0 ? '#ffffff' : '#c9d1d9';
    return `<text x="${MARGIN_PX}" y="${y}" fill="${fill}" xml:space="preserve">${escaped(cut(line))}</text>`;
  });
  const dots = ['#ff5f57', '#febc2e', '#28c840'].map(
    (fill, at) => `<circle cx="${MARGIN_PX + 4 + at * 18}" cy="${BAR_PX / 2}" r="5" fill="${fill}"/>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}" font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13">`,
    `<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>`,
    ...dots,
    `<text x="${width / 2}" y="${BAR_PX / 2 + 4}" fill="#8b949e" text-anchor="middle">${escaped(title)}</text>`,
    ...rows,
    '</svg>',
    '',
  ].join('\n');
}

const cut = (line: string): string => (line.length > COLUMNS ? `${line.slice(0, COLUMNS - 1)}…` : line);

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** The lines of a program's output as a terminal would leave them: without colours, of what was overwritten the last, no end of empty ones. */
export function terminalLines(output: string): string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control sequences of terminals
  const plain = output.replaceAll(/\x1b\[[0-9;?]*[A-Za-z]/g, '').replaceAll(/\r+\n/g, '\n');
  return plain
    .trimEnd()
    .split('\n')
    .map((line) => (line.split('\r').at(-1) ?? '').replaceAll('\t', '    ').trimEnd())
    .filter((line, at, all) => line !== '' || (all[at - 1] ?? '') !== '');
}
