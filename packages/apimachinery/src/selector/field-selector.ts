/** Field selectors: `?fieldSelector=metadata.name=x,status.phase!=Running` (apimachinery's fields package). */
import { badRequest } from '../meta/status.ts';
import { MAX_SELECTOR_TEXT } from './label-selector.ts';

export interface FieldRequirement {
  readonly field: string;
  readonly op: '=' | '!=';
  readonly value: string;
}

/**
 * Parses a selector into its requirements, all of which must hold; '' gives none. In values a backslash escapes
 * backslash, comma and equals sign.
 * @throws ApiError 400
 */
export function parseFieldSelector(text: string): FieldRequirement[] {
  if (text.length > MAX_SELECTOR_TEXT) throw badRequest(`a selector may have ${MAX_SELECTOR_TEXT} characters`);
  const requirements: FieldRequirement[] = [];
  for (const term of splitTerms(text).sort()) {
    if (term === '') continue;
    const requirement = parseTerm(term, text);
    // `=` alone asks for nothing (fields.Selector.Transform).
    if (requirement.field !== '' || requirement.value !== '') requirements.push(requirement);
  }
  return requirements;
}

function splitTerms(text: string): string[] {
  const terms: string[] = [];
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\') i++;
    else if (text[i] === ',') {
      terms.push(text.slice(start, i));
      start = i + 1;
    }
  }
  terms.push(text.slice(start));
  return terms;
}

function parseTerm(term: string, whole: string): FieldRequirement {
  const match = /!=|==|=/.exec(term);
  if (match === null) throw badRequest(`invalid selector: '${whole}'; can't understand '${term}'`);
  const value = unescapeValue(term.slice(match.index + match[0].length));
  return { field: term.slice(0, match.index), op: match[0] === '!=' ? '!=' : '=', value };
}

function unescapeValue(text: string): string {
  let out = '';
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (c === '\\') {
      const next = text[++i] ?? '';
      if (next !== '\\' && next !== ',' && next !== '=') {
        throw badRequest(`invalid field selector: invalid escape sequence: \\${next}`);
      }
      out += next;
    } else if (c === ',' || c === '=') {
      // Upstream prints the number of the character.
      throw badRequest(`invalid field selector: unescaped character in value: ${c.charCodeAt(0)}`);
    } else {
      out += c;
    }
  }
  return out;
}
