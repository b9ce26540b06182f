-- Which tools have these words in their name, title or description?
-- $text = weather forecast: words that must all occur
-- $limit = 20: rows to show
SELECT name, provider, service, effect, description
FROM tools
WHERE list_bool_and([contains(lower(concat_ws(' ', name, title, description)), word)
    for word in string_split(lower($text), ' ')])
ORDER BY quality DESC, name
LIMIT $limit::INTEGER;
