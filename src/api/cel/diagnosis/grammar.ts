/**
 * The grammar of CEL as data: what upstream's generated parser is made from. Only texts that were refused are read by
 * it; the parser of the fast path (`../parser.ts`) is written by hand.
 */

/** Kinds of tokens. The order is the one in which messages list them. */
export const TOKENS = [
  '<EOF>',
  "'=='",
  "'!='",
  "'in'",
  "'<'",
  "'<='",
  "'>='",
  "'>'",
  "'&&'",
  "'||'",
  "'['",
  "']'",
  "'{'",
  "'}'",
  "'('",
  "')'",
  "'.'",
  "','",
  "'-'",
  "'!'",
  "'?'",
  "':'",
  "'+'",
  "'*'",
  "'/'",
  "'%'",
  "'true'",
  "'false'",
  "'null'",
  'WHITESPACE',
  'COMMENT',
  'NUM_FLOAT',
  'NUM_INT',
  'NUM_UINT',
  'STRING',
  'BYTES',
  'IDENTIFIER',
  'ESC_IDENTIFIER',
] as const;

export const END = 0;

export type RuleName =
  | 'start'
  | 'expr'
  | 'or'
  | 'and'
  | 'relation'
  | 'calc'
  | 'unary'
  | 'member'
  | 'primary'
  | 'args'
  | 'items'
  | 'fields'
  | 'field'
  | 'entries'
  | 'fieldName'
  | 'item'
  | 'literal';

/** A labelled part is found in the tree under its label; several of one label make a list. */
export type Part =
  | { readonly kind: 'token'; readonly tokens: readonly number[]; readonly label: string }
  | { readonly kind: 'rule'; readonly rule: RuleName; readonly label: string; readonly precedence: number }
  | { readonly kind: 'maybe' | 'many' | 'some'; readonly body: readonly Part[] };

export interface Alternative {
  /** What the node of the tree is called. */
  readonly name: string;
  readonly parts: readonly Part[];
}

export interface Rule {
  readonly alternatives: readonly Alternative[];
  /**
   * Rules that begin with themselves: what may follow what was read so far, which becomes the part `left` of a new node.
   * Each binds with a precedence; the operand on its right is read with a higher one.
   */
  readonly suffixes?: readonly (Alternative & { readonly precedence: number })[];
}

const kindOf = (text: string): number => {
  const literal = TOKENS.indexOf(`'${text}'` as (typeof TOKENS)[number]);
  return literal === -1 ? TOKENS.indexOf(text as (typeof TOKENS)[number]) : literal;
};
/** One of these tokens, divided by spaces. */
const token = (texts: string, label = ''): Part => ({ kind: 'token', tokens: texts.split(' ').map(kindOf), label });
const rule = (name: RuleName, label: string, precedence = 0): Part => ({ kind: 'rule', rule: name, label, precedence });
const maybe = (...body: Part[]): Part => ({ kind: 'maybe', body });
const many = (...body: Part[]): Part => ({ kind: 'many', body });
const some = (...body: Part[]): Part => ({ kind: 'some', body });
const only = (name: string, ...parts: Part[]): Rule => ({ alternatives: [{ name, parts }] });

const NAME = 'IDENTIFIER';

export const GRAMMAR: Readonly<Record<RuleName, Rule>> = {
  start: only('Start', rule('expr', 'e'), token('<EOF>')),
  expr: only('Expr', rule('or', 'e'), maybe(token('?', 'op'), rule('or', 'yes'), token(':'), rule('expr', 'no'))),
  or: only('Or', rule('and', 'e'), many(token('||', 'ops'), rule('and', 'rest'))),
  and: only('And', rule('relation', 'e'), many(token('&&', 'ops'), rule('relation', 'rest'))),
  relation: {
    alternatives: [{ name: 'Relation', parts: [rule('calc', 'e')] }],
    suffixes: [
      {
        name: 'Relation',
        precedence: 1,
        parts: [token('< <= >= > == != in', 'op'), rule('relation', 'right', 2)],
      },
    ],
  },
  calc: {
    alternatives: [{ name: 'Calc', parts: [rule('unary', 'e')] }],
    suffixes: [
      { name: 'Calc', precedence: 2, parts: [token('* / %', 'op'), rule('calc', 'right', 3)] },
      { name: 'Calc', precedence: 1, parts: [token('+ -', 'op'), rule('calc', 'right', 2)] },
    ],
  },
  unary: {
    alternatives: [
      { name: 'MemberExpr', parts: [rule('member', 'e')] },
      { name: 'Not', parts: [some(token('!', 'ops')), rule('member', 'e')] },
      { name: 'Negate', parts: [some(token('-', 'ops')), rule('member', 'e')] },
    ],
  },
  member: {
    alternatives: [{ name: 'PrimaryExpr', parts: [rule('primary', 'e')] }],
    suffixes: [
      {
        name: 'Select',
        precedence: 3,
        parts: [token('.', 'op'), maybe(token('?', 'opt')), rule('fieldName', 'id')],
      },
      {
        name: 'MemberCall',
        precedence: 2,
        parts: [token('.', 'op'), token(NAME, 'id'), token('(', 'open'), maybe(rule('args', 'args')), token(')')],
      },
      {
        name: 'Index',
        precedence: 1,
        parts: [token('[', 'op'), maybe(token('?', 'opt')), rule('expr', 'index'), token(']')],
      },
    ],
  },
  primary: {
    alternatives: [
      { name: 'Ident', parts: [maybe(token('.', 'dot')), token(NAME, 'id')] },
      {
        name: 'GlobalCall',
        parts: [
          maybe(token('.', 'dot')),
          token(NAME, 'id'),
          token('(', 'open'),
          maybe(rule('args', 'args')),
          token(')'),
        ],
      },
      { name: 'Nested', parts: [token('('), rule('expr', 'e'), token(')')] },
      { name: 'List', parts: [token('[', 'op'), maybe(rule('items', 'items')), maybe(token(',')), token(']')] },
      { name: 'Map', parts: [token('{', 'op'), maybe(rule('entries', 'entries')), maybe(token(',')), token('}')] },
      {
        name: 'Struct',
        parts: [
          maybe(token('.', 'dot')),
          token(NAME, 'ids'),
          many(token('.'), token(NAME, 'ids')),
          token('{', 'op'),
          maybe(rule('fields', 'fields')),
          maybe(token(',')),
          token('}'),
        ],
      },
      { name: 'Constant', parts: [rule('literal', 'e')] },
    ],
  },
  args: only('Args', rule('expr', 'e'), many(token(','), rule('expr', 'e'))),
  items: only('Items', rule('item', 'items'), many(token(','), rule('item', 'items'))),
  fields: only(
    'Fields',
    rule('field', 'fields'),
    token(':', 'cols'),
    rule('expr', 'values'),
    many(token(','), rule('field', 'fields'), token(':', 'cols'), rule('expr', 'values')),
  ),
  field: only('Field', maybe(token('?', 'opt')), rule('fieldName', 'id')),
  entries: only(
    'Entries',
    rule('item', 'keys'),
    token(':', 'cols'),
    rule('expr', 'values'),
    many(token(','), rule('item', 'keys'), token(':', 'cols'), rule('expr', 'values')),
  ),
  fieldName: {
    alternatives: [
      { name: 'SimpleName', parts: [token(NAME, 'id')] },
      { name: 'QuotedName', parts: [token('ESC_IDENTIFIER', 'id')] },
    ],
  },
  item: only('Item', maybe(token('?', 'opt')), rule('expr', 'e')),
  literal: {
    alternatives: [
      { name: 'Int', parts: [maybe(token('-', 'sign')), token('NUM_INT', 'tok')] },
      { name: 'Uint', parts: [token('NUM_UINT', 'tok')] },
      { name: 'Double', parts: [maybe(token('-', 'sign')), token('NUM_FLOAT', 'tok')] },
      { name: 'String', parts: [token('STRING', 'tok')] },
      { name: 'Bytes', parts: [token('BYTES', 'tok')] },
      { name: 'True', parts: [token('true', 'tok')] },
      { name: 'False', parts: [token('false', 'tok')] },
      { name: 'Null', parts: [token('null', 'tok')] },
    ],
  },
};
