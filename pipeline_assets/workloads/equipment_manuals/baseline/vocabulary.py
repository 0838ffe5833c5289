"""Words of the trade in many languages: what manuals call themselves, their parts and their models.

Words only, as compiled patterns with the functions that ask them. Which languages are listed has
no bearing on the language field. Latin-script words match as whole words; Chinese and Japanese
ones anywhere, since no space sets them off.
"""

from __future__ import annotations

import re

# What a document of this kind is called, by language. One entry may hold several languages that
# share the word; the key tells apart covers that name the document in several languages.
_KIND_WORDS: dict[str, str] = {
    "de": r"\w*(?:anleitung|anweisung|handbuch|datenblatt)(?:en)?|\w*handbücher"
    r"|(?:kurz|schnell)einstieg|erste schritte|technische daten",
    "fr": r"modes? d['’]emploi|manuels?|notices?|guides? (?:de|d['’]|du|pour)|fiche technique"
    r"|instructions (?:de|d['’]|pour)|prise en main|démarrage rapide|livret",
    "ro": r"manual de utilizare|manualul|instrucțiuni|ghid(?:ul)?|fișă tehnică",
    "es": r"manual(?:es)? (?:de|del|para)|guía|instrucciones|hoja de datos|ficha técnica"
    r"|inicio rápido",
    "pt": r"manual (?:do|da)|guia|instruções|folha de dados|início rápido",
    "it": r"manuale|istruzioni|guida|libretto|scheda tecnica|avvio rapido",
    "nl": r"\w*handleiding|gebruiksaanwijzing|handboek|\w*instructies|snelstart\w*",
    "nordic": r"\w*(?:anvisning|vejledning|veiledning|håndbog|håndbok|handbok)(?:en|ar|er)?"
    r"|\w*instruktion(?:er|sbok)?|\w+manual(?:en)?|manualen|snabbguide|hurtigguide|datablad",
    "fi": r"\w*(?:ohje|ohjeet|ohjekirja|opas|käsikirja)",
    "pl": r"instrukcj[aei]|podręcznik|poradnik|karta katalogowa|przewodnik",
    "cs": r"návod\w*|příručka|uživatelská příručka|príručka|katalogový list|rychlý start",
    "hu": r"\w*útmutató\w*|kézikönyv|\w*utasítás|adatlap",
    "south-slavic": r"uputstv[oa]|upute|upu[tć]stvo|priručnik|navodila?|priročnik|упутство"
    r"|приручник|ръководство|инструкции|упатство",
    "et": r"\w*juhend\w*|käsiraamat",
    "lt": r"\w*(?:instrukcij\w*|vadovas)",
    "lv": r"\w*(?:instrukcija|pamācība|rokasgrāmata)",
    "ru": r"руководств[оа]|инструкци[яи]|паспорт|техническое описание|справочник"
    r"|памятка|быстрый старт|краткое руководство|пособие|самоучитель",
    "uk": r"посібник|інструкці[яї]|керівництво|настанов[аи]|технічний опис|довідник"
    r"|швидкий старт|порадник",
    "be": r"кіраўніцтва|інструкцыя",
    "el": r"εγχειρίδιο|οδηγίες|οδηγός",
    "tr": r"\w*(?:kılavuzu?|talimatları|talimatı)|el kitabı",
    "he": r"מדריך|הוראות",
    "ar": r"دليل|تعليمات|كتيب",
    "vi": r"hướng dẫn|sổ tay",
    "id": r"panduan|petunjuk|buku manual",
    "ko": r"\w*(?:설명서|매뉴얼|가이드|안내서|지침서)",
    "hi": r"मैनुअल|पुस्तिका|निर्देश\w*",
    "th": r"คู่มือ\w*",
    # Last, because other languages share "manual" and "guide" and add a word of their own.
    "en": r"(?:(?:user|owner|operator|reference|service|instruction|operating|operation|operations"
    r"|maintenance|installation|technical|programming|training|repair|hardware|software|safety"
    r"|workshop|getting[- ]started|quick[- ]?start|product|application|set-?up|assembly)"
    r"(?:['’]?s['’]?)? )*"
    r"(?:manuals?|guides?|handbooks?|instructions?|instruction books?|instruction sheet"
    r"|user['’]?s?['’]? reference|data ?sheets?|specifications?|leaflet)"
    r"|how[- ]to|quick ?start|getting started|technical data|technical description"
    r"|technical reference|product information|operating procedures?|directions for use"
    r"|application notes?|tutorial|fact ?sheet",
}
_KIND_WORDS_CJK: dict[str, str] = {
    "ja": r"取扱説明|取り扱い説明|説明書|マニュアル|ガイド|手引き?|手順書|データシート|仕様書|入門",
    "zh": r"说明书|說明書|使用说明|使用說明|手册|手冊|指南|数据手册|规格书|規格書|教程|使用手",
}
_KIND = re.compile(
    r"(?<!\w)(?:"
    + "|".join(
        f"(?P<{language.replace('-', '_')}>{words})" for language, words in _KIND_WORDS.items()
    )
    + r")(?!\w)|"
    + "|".join(f"(?P<{language}>{words})" for language, words in _KIND_WORDS_CJK.items()),
    re.IGNORECASE,
)

# Words that a title may have beside the kind without saying what the document is about: who it is
# for, what one does with it, in which language it is.
_SMALL = re.compile(
    r"(?<!\w)(?:the|a|an|of|for|to|and|your|this|und|et|y|e|i|и|та|і|ir|de|des|du|d|del|la|le|les"
    r"|el|l|der|die|das|für|zur|zum|pour|para|per|для|по|do|da|k|ke|pro|voor|till|til|users?"
    r"|owners?"
    r"|operators?|s|reference|complete|full|short|brief|quick|easy|original|originale?s?"
    r"|translation|rev|version|use|using|operation|operating|installation|service|maintenance"
    r"|english|deutsch|français|español|italiano|русский|українська|polski|lietuvių"
    r"|bedienung|montage|gebrauch|betrieb|emploi|utilisation|utilisateur|usage|entretien"
    r"|usuarios?|usuári[oa]s?|uso|utilizador|utilização|operación|operação|funcionamiento"
    r"|mantenimiento|manutenção|instalación|instalação|propietario|proprietário|utente|utilizzo"
    r"|installazione|manutenzione|gebruik(?:er|ers)?|bruker|användar\w*|brugs\w*|käyttö\w*"
    r"|obsług[ai]|użytkownika|użytkowania|montażu|instalacji|použití|obsluze|obsluhu|uživatele"
    r"|használati|kezelési|felhasználói|utilizare|instalare|utilizatorului|za|uporabu|korištenje"
    r"|lietošanas|lietotāja|vartotojo|naudojimo|naudotojo|montavimo|kasutus\w*|kullanım|kullanıcı"
    r"|χρήσης|χρήστη|эксплуатации|пользователя|пользования|оператора|применению|монтажу"
    r"|использованию|користувача|експлуатації|використання|користування|употреба|потребителя"
    r"|사용|사용자|설치)(?!\w)|使用|操作|安装|安裝|用户|用戶|产品|產品|取扱|の|製品|製",
    re.IGNORECASE,
)

_CONTENTS = re.compile(
    r"(?:table of |short |brief )?contents|index|inhalt|inhaltsverzeichnis|sommaire|índice"
    r"|table des matières|tabla de contenidos?|contenidos?|contenuti|indice|sommario|inhoud"
    r"|inhoudsopgave|indhold(?:sfortegnelse)?|innhold|innehåll(?:sförteckning)?"
    r"|sisällys(?:luettelo)?"
    r"|spis treści|obsah|tartalom(?:jegyzék)?|cuprins|sadržaj|садржај|съдържание|turinys|saturs"
    r"|sisukord|содержание|оглавление|зміст|περιεχόμενα|içindekiler|目次|目录|目錄|목차|sumário"
    r"|daftar isi|mục lục|kazalo|vsebina|תוכן(?: העניינים)?|المحتويات",
    re.IGNORECASE,
)

# Heads of the parts that manuals and data sheets begin with: none of them is a document's title.
_SECTION = re.compile(
    r"(?:(?:important )?(?:safety|warning) (?:instructions?|information|precautions?|notes?"
    r"|notices?"
    r"|warnings?|guidelines|rules)|important (?:safeguards|notices?|information|notes?)"
    r"|(?:safety )?(?:warnings?|cautions?|precautions?)(?: and (?:warnings?|cautions?"
    r"|precautions?))?"
    r"|introduction|foreword|preface|overview|general(?: description| information)?|description"
    r"|features(?: and benefits)?|key features|applications?|specifications?|notice|disclaimer"
    r"|(?:limited )?warranty|trademarks?|package contents|what['’]s in the box|parts list"
    r"|before (?:you begin|use|using .*)|welcome|thank you.*|congratulations.*|summary"
    r"|(?:wichtige )?(?:sicherheits)?hinweise|einleitung|einführung|vorwort|warnung|vorsicht"
    r"|allgemeines|beschreibung|lieferumfang|avertissements?|précautions?|consignes de sécurité"
    r"|avant-propos|présentation|généralités|precauciones|advertencias?|introducción|prólogo"
    r"|instrucciones (?:importantes )?de seguridad|descripción|características|avvertenze"
    r"|introduzione|precauzioni|istruzioni di sicurezza|descrizione|premessa|introdução"
    r"|precauções|instruções de segurança|inleiding|voorwoord|veiligheids\w+|введение|предисловие"
    r"|(?:общее )?описание|назначение|внимание|(?:меры|требования"
    r"|правила) (?:техники )?безопасности"
    r"|общие (?:сведения|указания|положения)|технические характеристики|вступ|увага|опис"
    r"|загальні (?:відомості|положення)|призначення|заходи безпеки|технічні характеристики"
    r"|įvadas|paskirtis|saugos (?:reikalavimai|priemonės)|aprašymas|dėmesio|wstęp|wprowadzenie"
    r"|uwaga|ostrzeżenie|úvod|upozornění|varování|bezpečnostní pokyny|bevezetés|introducere"
    r"|säkerhets\w+|sikkerheds\w+|turvallisuus\w*)"
    r"|はじめに|安全上のご注意|ご使用の前に|概要|特長|前言|简介|安全须知|注意事项|概述|产品介绍|警告|注意",
    re.IGNORECASE,
)

# Papers of another trade: what stands under such a heading is not a manual's title.
_OTHER_PAPER = re.compile(
    r"(?<!\w)(?:invoice|receipt|purchase order|order confirmation|delivery note|packing list"
    r"|quotation|statement of account|credit note|rechnung|quittung|lieferschein|angebot"
    r"|auftragsbestätigung|facture|reçu|devis|bon de livraison|factura|recibo|presupuesto|fattura"
    r"|ricevuta|preventivo|faktura|paragon|счёт(?:-фактура)?|счет(?:-фактура)?|накладная|рахунок"
    r"|накладна|dear (?:sir|madam|mr|mrs|ms)|sehr geehrte[rs]? (?:herr|frau|damen)"
    r"|curriculum vitae|press release"
    r"|minutes of|abstract|thesis|dissertation|newsletter|agenda)(?!\w)|請求書|領収書|发票|收据",
    re.IGNORECASE,
)

_HEADING_LENGTH = 80
_HEADING_WORDS = 5  # "Keep the receipt in a safe place" is said in manuals too

# Labels that models stand behind.
_MODEL_LABEL = re.compile(
    r"^(?:(?:product )?models?(?: ?(?:no|number|name|n°|nr)s?\.?)?|modelle?|modell(?:e|nummer)?"
    r"|modèles?|modelos?|modell[oi]|модел[ьи]|модель|applies to|applicable (?:models?|to)"
    r"|valid for|gültig für|gilt für|typen?|types?|tipo|тип|型号|型號|型番|形名|機種|适用型号"
    r"|対象機種|모델(?:명)?)\s*[:：]\s*"
    r"|^(?:product )?models? ?(?:no|number|nr|n°)s?\.?\s+(?=\S*\d)",
    re.IGNORECASE,
)

_FOR = (
    r"(?:for(?: use with)?|with|für|mit|zum?r?|pour|avec|para|con|per|voor|met|til|för|med|do|dla"
    r"|pro|pre|для|до|к|з|skirtas|用|対応)"
)
_AFTER_FOR = re.compile(rf"(?<!\w){_FOR}(?!\w)[^\d,;.]{{0,30}}$", re.IGNORECASE)


def kind_languages(text: str) -> frozenset[str]:
    """Languages in whose words `text` calls itself a manual, guide, data sheet or the like."""
    return frozenset(
        match.lastgroup for match in _KIND.finditer(text) if match.lastgroup is not None
    )


def names_kind(text: str) -> bool:
    """Whether `text` says what kind of document it is."""
    return _KIND.search(text) is not None


def says_more_than_kind(text: str) -> bool:
    """Whether `text` also says what the document is about: "User manual" alone does not."""
    return sum(character.isalnum() for character in without_kind(text)) >= 2


def without_kind(text: str) -> str:
    """What is left of `text` without the words for the kind of document and little words."""
    return _SMALL.sub(" ", _KIND.sub(" ", text))


def is_contents_heading(text: str) -> bool:
    """Whether `text` heads a table of contents ("Contents", "I N D E X")."""
    bare = text.strip(" .:-–—•")
    if _CONTENTS.fullmatch(bare):
        return True
    squeezed = bare.replace(" ", "")
    spaced = len(bare) >= 2 * len(squeezed) - 1 > 3
    return spaced and _CONTENTS.fullmatch(squeezed) is not None


def is_section_heading(text: str) -> bool:
    """Whether `text` heads one of the usual first parts: "Introduction", "Safety instructions"."""
    return _SECTION.fullmatch(text.strip(" .:!-–—•")) is not None


def names_other_paper(line: str) -> bool:
    """Whether a short line calls the paper an invoice, a letter, an article or the like."""
    short = len(line) <= _HEADING_LENGTH and len(line.split()) <= _HEADING_WORDS
    return short and _OTHER_PAPER.search(line) is not None


def after_model_label(text: str) -> str | None:
    """What stands behind a label such as "Model:" at the start of `text`, or None."""
    match = _MODEL_LABEL.match(text)
    return text[match.end() :] if match else None


def follows_for(before: str) -> bool:
    """Whether the words before a name say that it is only what the product is used with.

    "Box for X" is about the box; "User manual for X" is about X.
    """
    match = _AFTER_FOR.search(before)
    if match is None:
        return False
    head = before[: match.start()].rstrip()
    kind_at_end = [found for found in _KIND.finditer(head) if found.end() >= len(head)]
    return bool(head) and not kind_at_end
