/** Patterns of `--cors-allowed-origins`, and what is wrong with one. */

const HELP =
  'a pattern that is not anchored at both ends of the host allows other hosts; write it as ^https://example\\.com(:|$)';

/**
 * A line for the user; undefined for a pattern that will do. As upstream, a marker of a beginning (`^`, `//`) and one of an
 * end (`$`, `:`) have to be in it: `example.com` would match `https://example.com.attacker.net`.
 */
export function originPatternProblem(pattern: string): string | undefined {
  if (pattern === '') return `empty value in --cors-allowed-origins: ${HELP}`;
  try {
    new RegExp(pattern);
  } catch {
    return `--cors-allowed-origins takes regular expressions, not ${JSON.stringify(pattern)}`;
  }
  if (/\^|\/\//.test(pattern) && /[$:]/.test(pattern)) return undefined;
  return `--cors-allowed-origins has an invalid regular expression ${JSON.stringify(pattern)}: regular expression does not pin to start/end of host in the origin header; ${HELP}`;
}
