/** The static token file: lines of `token,user,uid[,"group1,group2"]` (token/tokenfile). */
import type { UserInfo } from './identity.ts';
import type { FindTokenUser } from './token-authenticator.ts';

/** Reads the file's text. Throws SyntaxError with the number of the line that is wrong; tokens are never in the message. */
export function parseStaticTokens(text: string): FindTokenUser {
  const users = new Map<string, UserInfo>();
  for (const [at, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const fields = csvFields(line);
    const [token = '', username = '', uid = '', groups = ''] = fields;
    if (fields.length < 3)
      throw new SyntaxError(`line ${at + 1} has ${fields.length} columns: token,user,uid are needed`);
    if (token === '' || username === '') throw new SyntaxError(`line ${at + 1} has an empty token or user`);
    if (users.has(token)) throw new SyntaxError(`line ${at + 1} has the token of another line`);
    const names = groups.split(',').filter((name) => name !== '');
    users.set(token, { username, ...(uid !== '' && { uid }), groups: [...names, 'system:authenticated'] });
  }
  return (token) => users.get(token);
}

function csvFields(line: string): string[] {
  const fields: string[] = [];
  const field = /\s*(?:"((?:[^"]|"")*)"|([^",][^,]*|))(,|$)/y;
  for (;;) {
    const match = field.exec(line);
    if (!match) throw new SyntaxError('a quoted column has no end');
    fields.push((match[1]?.replaceAll('""', '"') ?? match[2] ?? '').trim());
    if (match[3] === '') return fields;
  }
}
