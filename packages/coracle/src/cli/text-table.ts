/**
 * Columns as wide as their widest cell, two spaces apart, without blanks at the end of a line. `paint` may put marks around a cell
 * of a row that take no room.
 */
export function textTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  paint: (cell: string, column: number) => string = (cell) => cell,
): string {
  const lines = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  return lines
    .map((line, at) =>
      line
        .map((cell, column) => {
          const blanks = ' '.repeat(widths[column]! - cell.length);
          return `${at === 0 ? cell : paint(cell, column)}${blanks}`;
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
