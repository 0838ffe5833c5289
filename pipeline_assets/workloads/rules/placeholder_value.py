"""Rule `placeholder_value`: what is absent is called absent, not "N/A".

A word for "nothing" in the place of a value would be published and searched as if a document
said it.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from pipeline_assets.workloads.workload import Rule, Shard

# Words for "none", "unknown", "not given" and "to be done", letters and digits only.
_ALONE = frozenset(
    # English, and what programs write
    "n a|na|t b d|t b a|none|unknown|null|nil|nan|undefined|void|empty|blank|missing|tbd|tba|tbc"
    "|todo|untitled|untitled document|unbenannt|sin nombre|sans nom|senza nome|無題|无标题|無標題"
    "|to be determined|to be defined|to be announced|to be confirmed|not available|not applicable"
    "|not found|not given|not specified|not stated|not provided|not known|not present|not printed"
    "|not mentioned|not detected|not determined|not identified|no data|no value|no information"
    "|nothing|nothing found|none found|none given|none printed|none specified|unspecified"
    "|undetermined|unidentified|unnamed|unavailable|absent|uncertain|pending|placeholder|dummy"
    "|example|sample|test|string|value|text|foo|bar|foobar|lorem ipsum|xxx|xxxx|insert here"
    "|unknown model|unknown product|unknown title|unknown language|no title|no name|no model"
    "|no description|no identifier|no identifiers|no language|false|true|error"
    # German
    "|keine|keiner|kein|keines|keine angabe|keine angaben|k a|unbekannt|nicht angegeben"
    "|nicht vorhanden|nicht verfügbar|nicht bekannt|nicht gefunden|nicht zutreffend|entfällt"
    "|fehlt|ohne|ohne titel|kein titel|unbestimmt|nichts"
    # French
    "|aucun|aucune|inconnu|inconnue|non disponible|non applicable|non spécifié|non précisé"
    "|non indiqué|non renseigné|non trouvé|néant|sans objet|sans titre|rien|s o|n d|n c"
    # Spanish
    "|ninguno|ninguna|desconocido|desconocida|no disponible|no aplica|no aplicable"
    "|no especificado|no indicado|no encontrado|sin título|sin titulo|sin datos|nada|vacío"
    # Italian
    "|nessuno|nessuna|sconosciuto|sconosciuta|non specificato|non indicato|non trovato"
    "|non disponibile|non applicabile|senza titolo|assente|niente"
    # Portuguese
    "|nenhum|nenhuma|desconhecido|desconhecida|não disponível|não aplicável|não especificado"
    "|sem título|ausente"
    # Dutch, Danish, Norwegian, Swedish, Finnish
    "|geen|onbekend|niet beschikbaar|niet van toepassing|n v t|niet opgegeven|ingen|ukendt|ukjent"
    "|ikke tilgængelig|ikke tilgjengelig|okänd|okänt|saknas|ej tillgänglig|inget|ei ole"
    "|tuntematon|ei saatavilla|ei tiedossa"
    # Polish, Czech, Slovak, Slovene, Croatian, Serbian
    "|brak|brak danych|nieznany|nieznana|nieznane|nie dotyczy|nie podano|niedostępne|žádný|žádná"
    "|žádné|neznámý|neznámá|neznámé|není|nedostupné|neuvedeno|žiadny|žiadne|neuvedené|nič|neznano"
    "|ni podatka|nema|nepoznato|nije navedeno|nije dostupno"
    # Hungarian, Romanian, Turkish, Lithuanian, Latvian, Estonian
    "|nincs|ismeretlen|nincs adat|nem elérhető|niciunul|nimic|necunoscut|indisponibil|nespecificat"
    "|yok|bilinmiyor|belirtilmemiş|mevcut değil|nėra|nežinoma|nežinomas|nenurodyta|nenurodytas"
    "|nėra duomenų|nav|nezināms|nezināma|nav norādīts|puudub|teadmata|tundmatu|pole"
    # Russian, Ukrainian, Belarusian, Bulgarian, Serbian
    "|нет|нет данных|неизвестно|неизвестный|неизвестна|неизвестен|не указано|не указан"
    "|не указана|не определено|не найдено|отсутствует|отсутствуют|недоступно|неприменимо"
    "|не применимо|без названия|н д|немає|немає даних|невідомо|невідомий|невідома|не вказано"
    "|не вказаний|не визначено|не знайдено|відсутній|відсутня|відсутнє|недоступно|без назви"
    "|няма|невядома|адсутнічае|неизвестно|липсва|непознато|нема"
    # Greek, Arabic, Hebrew, Hindi, Thai, Vietnamese, Indonesian
    "|κανένα|κανένας|άγνωστο|άγνωστος|δεν υπάρχει|μη διαθέσιμο|لا يوجد|غير معروف|غير متوفر"
    "|אין|לא ידוע|לא זמין|अज्ञात|उपलब्ध नहीं|ไม่มี|ไม่ทราบ|ไม่ระบุ|không có|không rõ"
    "|tidak ada|tidak diketahui|tidak tersedia"
    # Chinese, Japanese, Korean
    "|无|無|没有|沒有|未知|不详|不詳|不明|暂无|暫無|不适用|不適用|未提供|未指定|未找到|待定|空"
    "|なし|無し|ありません|該当なし|該当無し|記載なし|未記載|未定|不明です|未設定"
    "|없음|알 수 없음|알수없음|미정|해당 없음|해당없음|불명|미상".split("|")
)
# A sentence that says no more than that something is missing.
_SENTENCE = (
    r"^(?:(?:there (?:is|was) )?no (?:\w+ )?(?:title|name|description|identifiers?|models?"
    r"|part numbers?|language|information|text|data|details|content|summary)"
    r"(?: (?:is|was|are|were|could be))?"
    r" (?:available|found|given|specified|provided|printed|stated|present|determined|identified)"
    r"|(?:the )?(?:title|name|description|identifiers?|models?|part numbers?|language|document"
    r"|product|text|content)(?: \w+)?"
    r" (?:is |are |was |were |has been |could |can ?)?(?:not |never )(?:be )?"
    r"(?:available|found|given|specified|provided|printed|stated|present|known|determined"
    r"|identified|described|mentioned)"
    r"|(?:unable to|cannot|could not) (?:determine|identify|find|extract)\b.*"
    r"|(?:title|name|model|models?|description|language|product|identifier|type|value|typ|modell"
    r"|titel|titre|modèle|título|modelo|titolo|modello|модель|название)s? "
    r"(?:n a|none|unknown|null|unbekannt|inconnue?|desconocid[oa]|sconosciut[oa]|неизвестно))$"
)
_LONGEST = 120
"""Characters; whoever writes more says something."""


def make_rule(fields: Sequence[str], list_field: str) -> Rule:
    """The rule for a workload.

    Args:
        fields: columns of its values' frame that hold words; no column of codes.
        list_field: the field whose members are `Shard.items`.
    """

    def check(shard: Shard) -> pl.DataFrame:
        values = pl.concat(
            [
                *(shard.values.select("row", field=pl.lit(name), value=name) for name in fields),
                shard.items.select("row", field=pl.lit(list_field), value="value"),
            ]
        ).filter(pl.col("value").str.len_chars() <= _LONGEST)
        words = values.with_columns(words=_words(pl.col("value")))
        placed = words.filter(
            (pl.col("words") == "")
            | pl.col("words").is_in(_ALONE)
            | pl.col("words").str.contains(_SENTENCE)
        )
        return placed.select(
            "row", "field", note=pl.lit("a word for nothing stands in the place of a value")
        ).unique(maintain_order=True)

    return Rule(id="placeholder_value", version=1, severity="review", check=check, family="form")


def _words(value: pl.Expr) -> pl.Expr:
    """The words of a value in lower case, with single spaces and no mark between."""
    return (
        value.str.normalize("NFKC")
        .str.to_lowercase()
        .str.replace_all(r"[^\p{L}\p{M}\p{N}]+", " ")
        .str.strip_chars()
    )
