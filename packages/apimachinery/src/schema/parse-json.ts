/** Request bodies to values: the face of the JSON and YAML readers. */
export { MAX_DEPTH, type NumberOptions, type ParsedJson, parseJson, parseJsonInPieces } from './read-json.ts';
export { parseYaml } from './read-yaml.ts';
export { parseStored, parseWide } from './wide-integers.ts';
