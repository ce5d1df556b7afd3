/** `find` and `findAll`, in RE2. */
import { FIND } from '../cost-models.ts';
import { type Overload, overload } from '../declarations.ts';
import { compileRegex } from './regex-cache.ts';

function find(text: string, pattern: string): string {
  const matcher = compileRegex(pattern).matcher(text);
  return matcher.find() ? (matcher.group() ?? '') : '';
}

function findAll(text: string, pattern: string, limit: number | bigint = -1): string[] {
  const matcher = compileRegex(pattern).matcher(text);
  const found: string[] = [];
  while ((limit < 0 || found.length < limit) && matcher.find()) found.push(matcher.group() ?? '');
  return found;
}

export const REGEX_LIBRARY: readonly Overload[] = [
  overload('find', 'string.(string): string', find, FIND),
  overload('findAll', 'string.(string): list(string)', findAll, FIND),
  overload('findAll', 'string.(string, int): list(string)', findAll, FIND),
];
