import ts from 'typescript';

/** A change of one place within one line of a source file. */
export interface Mutant {
  /** From 1. */
  readonly line: number;
  readonly before: string;
  /** The whole line after the change. */
  readonly after: string;
}

/** An edit of a text, between two offsets. */
interface Edit {
  readonly start: number;
  readonly end: number;
  readonly by: string;
}

/** Each mutant of a file, in the order of its lines. */
export function mutantsOf(path: string, text: string): readonly Mutant[] {
  const edits = path.endsWith('.lua') ? editsOfLua(text) : editsOfTypeScript(path, text);
  return edits
    .toSorted((one, other) => one.start - other.start)
    .flatMap((edit) => mutantOf(text, edit) ?? []);
}

function mutantOf(text: string, { start, end, by }: Edit): Mutant | undefined {
  const lineStart = text.lastIndexOf('\n', start - 1) + 1;
  const lineEnd = text.indexOf('\n', start);
  if (end > lineEnd) return undefined;
  const before = text.slice(lineStart, lineEnd);
  const after = text.slice(lineStart, start) + by + text.slice(end, lineEnd);
  return { line: text.slice(0, start).split('\n').length, before, after };
}

const OPERATORS: ReadonlyMap<ts.SyntaxKind, string> = new Map([
  [ts.SyntaxKind.LessThanToken, '<='],
  [ts.SyntaxKind.LessThanEqualsToken, '<'],
  [ts.SyntaxKind.GreaterThanToken, '>='],
  [ts.SyntaxKind.GreaterThanEqualsToken, '>'],
  [ts.SyntaxKind.EqualsEqualsEqualsToken, '!=='],
  [ts.SyntaxKind.ExclamationEqualsEqualsToken, '==='],
  [ts.SyntaxKind.AmpersandAmpersandToken, '||'],
  [ts.SyntaxKind.BarBarToken, '&&'],
  [ts.SyntaxKind.PlusToken, '-'],
  [ts.SyntaxKind.MinusToken, '+'],
  [ts.SyntaxKind.AsteriskToken, '/'],
  [ts.SyntaxKind.PlusEqualsToken, '-='],
  [ts.SyntaxKind.MinusEqualsToken, '+='],
]);

function editsOfTypeScript(path: string, text: string): readonly Edit[] {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const edits: Edit[] = [];
  const replace = (node: ts.Node, by: string): void => {
    edits.push({ start: node.getStart(source), end: node.getEnd(), by });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isInterfaceDeclaration(node)) return;
    for (const [place, by] of replacements(node)) replace(place, by);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return edits;
}

function replacements(node: ts.Node): readonly (readonly [ts.Node, string])[] {
  if (ts.isIfStatement(node))
    return [
      [node.expression, 'false'],
      [node.expression, 'true'],
    ];
  if (ts.isBinaryExpression(node)) {
    const operator = OPERATORS.get(node.operatorToken.kind);
    // A text that is put together: to change it is to change a message.
    const isText = [node.left, node.right].some(
      (side) => ts.isStringLiteralLike(side) || ts.isTemplateExpression(side),
    );
    return operator === undefined || isText ? [] : [[node.operatorToken, operator]];
  }
  if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken)
    return [[node, node.operand.getText()]];
  if (ts.isConditionalExpression(node))
    return [
      [node.condition, 'true'],
      [node.condition, 'false'],
    ];
  if (node.kind === ts.SyntaxKind.TrueKeyword) return [[node, 'false']];
  if (node.kind === ts.SyntaxKind.FalseKeyword) return [[node, 'true']];
  if (ts.isExpressionStatement(node) && isEffect(node)) return [[node, ';']];
  return [];
}

/** A call or an assignment. Without a line in the log the gateway does the same. */
function isEffect({ expression }: ts.ExpressionStatement): boolean {
  const inner =
    ts.isAwaitExpression(expression) || ts.isVoidExpression(expression) ? expression.expression : expression;
  if (ts.isCallExpression(inner)) return !/\blog\.\w+\(|^super\(/.test(inner.getText());
  return ts.isBinaryExpression(inner);
}

const LUA_TOKENS: readonly (readonly [RegExp, string])[] = [
  [/ == /g, ' ~= '],
  [/ ~= /g, ' == '],
  [/ < /g, ' <= '],
  [/ <= /g, ' < '],
  [/ > /g, ' >= '],
  [/ >= /g, ' > '],
  [/ and /g, ' or '],
  [/ or /g, ' and '],
  [/ \+ /g, ' - '],
  [/ - /g, ' + '],
  [/\btrue\b/g, 'false'],
  [/\bfalse\b/g, 'true'],
  [/\bnot /g, ''],
  [/\bmath\.max\b/g, 'math.min'],
  [/\bmath\.min\b/g, 'math.max'],
  // Conditions of one line, and calls that write.
  [/(?<=\bif ).+(?= then\b)/g, 'false'],
  [/(?<=\bif ).+(?= then\b)/g, 'true'],
  [/(?<=^ *)(?:redis\.call\(.*\)|[\w.[\]]+ = [^{\n]+)$/gm, ''],
];

function editsOfLua(text: string): readonly Edit[] {
  // The contract at the top, and comments at the end of a line.
  const code = text.replace(/--\[\[[\s\S]*?\]\]|--.*$/gm, (comment) => comment.replace(/[^\n]/g, '\0'));
  return LUA_TOKENS.flatMap(([token, by]) =>
    [...code.matchAll(token)].map((match) => ({
      start: match.index,
      end: match.index + match[0].length,
      by,
    })),
  );
}
